package dataset

import (
	"math/bits"
	"slices"
)

// idSet is a set of small integers as bits. After rank it also tells the place of a member among all of them, with one
// or two cache lines touched and no hashing: MovieLens ids, which have gaps, need 25 kB instead of a hash map.
type idSet struct {
	words  []uint64
	before []int32 // members in earlier words
}

func (s *idSet) mark(id uint32) {
	w := int(id >> 6)
	if w >= len(s.words) {
		s.grow(w)
	}
	s.words[w] |= 1 << (id & 63)
}

func (s *idSet) grow(w int) {
	s.words = append(s.words, make([]uint64, max(w+1, 2*len(s.words))-len(s.words))...)
}

// union adds the members of other.
func (s *idSet) union(other *idSet) {
	if len(other.words) > len(s.words) {
		s.grow(len(other.words) - 1)
	}
	for k, w := range other.words {
		s.words[k] |= w
	}
}

// rank prepares index, and returns the members in ascending order.
func (s *idSet) rank() []int64 {
	s.before = make([]int32, len(s.words))
	n := 0
	for k, w := range s.words {
		s.before[k] = int32(n)
		n += bits.OnesCount64(w)
	}
	members := make([]int64, 0, n)
	for k, w := range s.words {
		for ; w != 0; w &= w - 1 {
			members = append(members, int64(k)<<6+int64(bits.TrailingZeros64(w)))
		}
	}
	return members
}

// index is the place of a member.
func (s *idSet) index(id uint32) int32 {
	w := s.words[id>>6]
	return s.before[id>>6] + int32(bits.OnesCount64(w&(1<<(id&63)-1)))
}

// nameSet numbers names in the order of their first appearance.
type nameSet map[string]int32

func (s nameSet) add(name []byte) int32 {
	if k, ok := s[string(name)]; ok {
		return k
	}
	k := int32(len(s))
	s[string(name)] = k
	return k
}

// mergeNames numbers the names of several sets together, in ascending order, and returns for each set the new
// number of each of its own. Names are compared as numbers if all of them are plain decimal integers.
func mergeNames(sets []nameSet) (*IDs, [][]int32, error) {
	total := map[string]int32{}
	numeric := true
	for _, set := range sets {
		for name := range set {
			if _, seen := total[name]; seen {
				continue
			}
			total[name] = 0
			if numeric {
				_, numeric = plainInteger(name)
			}
		}
	}
	names := make([]string, 0, len(total))
	for name := range total {
		names = append(names, name)
	}
	if numeric {
		slices.SortFunc(names, func(a, b string) int {
			x, _ := plainInteger(a)
			y, _ := plainInteger(b)
			return int(min(max(x-y, -1), 1))
		})
	} else {
		slices.Sort(names)
	}
	for k, name := range names {
		total[name] = int32(k)
	}
	ids, err := NewIDs(names)
	if err != nil {
		return nil, nil, err
	}
	remap := make([][]int32, len(sets))
	for k, set := range sets {
		remap[k] = make([]int32, len(set))
		for name, own := range set {
			remap[k][own] = total[name]
		}
	}
	return ids, remap, nil
}
