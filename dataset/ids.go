package dataset

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// IDs translates between the indices 0..Len()-1 of a matrix and the names of its rows or columns in the source.
//
// It takes no hash map: 8 bytes per decimal id, the bytes of the name plus 4 for others, and nothing at all for
// the identity, where index i is called strconv.Itoa(i). Readers number ids in ascending order, numerically when
// every id is a plain decimal integer and bytewise otherwise.
type IDs struct {
	n       int
	numbers []int64  // decimal ids; nil in the other forms
	text    string   // names of the textual form, end to end
	ends    []uint32 // ends[i] is where name i stops in text
	order   []int32  // indices sorted by name; nil if they are sorted already
}

const maxIDText = math.MaxUint32

var errIDText = errors.New("dataset: the id names take more than 4 GiB together")

// IdentityIDs names index i by its own decimal form, for i in 0..n-1.
func IdentityIDs(n int) *IDs { return &IDs{n: max(n, 0)} }

// NewIDs gives index i the name names[i]. The names must be distinct.
func NewIDs(names []string) (*IDs, error) {
	numbers := make([]int64, len(names))
	identity := true
	for i, name := range names {
		v, ok := plainInteger(name)
		if !ok {
			return newTextIDs(names)
		}
		numbers[i] = v
		identity = identity && v == int64(i)
	}
	if identity {
		return IdentityIDs(len(names)), nil
	}
	return newNumericIDs(numbers)
}

// newNumericIDs takes ownership of numbers.
func newNumericIDs(numbers []int64) (*IDs, error) {
	ids := &IDs{n: len(numbers), numbers: numbers}
	return ids, ids.index()
}

func newTextIDs(names []string) (*IDs, error) {
	total := 0
	for _, s := range names {
		total += len(s)
	}
	if total > maxIDText {
		return nil, errIDText
	}
	text := make([]byte, 0, total)
	ends := make([]uint32, len(names))
	for i, s := range names {
		text = append(text, s...)
		ends[i] = uint32(len(text))
	}
	ids := &IDs{n: len(names), text: string(text), ends: ends}
	return ids, ids.index()
}

// index fills order if the names are not ascending, and reports names that occur twice.
func (d *IDs) index() error {
	if d.numbers == nil && d.ends == nil {
		return nil // the identity, of any length
	}
	sorted := true
	for i := 1; i < d.n && sorted; i++ {
		sorted = d.compare(i-1, i) < 0
	}
	if sorted {
		return nil
	}
	order := make([]int32, d.n)
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return d.compare(int(a), int(b)) })
	for k := 1; k < d.n; k++ {
		if a, b := int(order[k-1]), int(order[k]); d.compare(a, b) == 0 {
			return fmt.Errorf("dataset: id %q is given to both index %d and index %d", d.Name(a), min(a, b), max(a, b))
		}
	}
	d.order = order
	return nil
}

// compare orders the names of indices a and b, which are not the identity.
func (d *IDs) compare(a, b int) int {
	if d.numbers != nil {
		return cmp.Compare(d.numbers[a], d.numbers[b])
	}
	return strings.Compare(d.textName(a), d.textName(b))
}

func (d *IDs) textName(i int) string {
	start := uint32(0)
	if i > 0 {
		start = d.ends[i-1]
	}
	return d.text[start:d.ends[i]]
}

// Len is the number of ids.
func (d *IDs) Len() int { return d.n }

// Name returns the name of index i, or "" if i is out of range.
func (d *IDs) Name(i int) string {
	switch {
	case i < 0 || i >= d.n:
		return ""
	case d.numbers != nil:
		return strconv.FormatInt(d.numbers[i], 10)
	case d.ends != nil:
		return d.textName(i)
	}
	return strconv.Itoa(i)
}

// Lookup returns the index of name, and false if no index has it. It takes O(log Len()) time.
func (d *IDs) Lookup(name string) (int32, bool) {
	if d.ends != nil {
		k := sort.Search(d.n, func(k int) bool { return d.textName(d.sorted(k)) >= name })
		if k < d.n && d.textName(d.sorted(k)) == name {
			return int32(d.sorted(k)), true
		}
		return 0, false
	}
	v, ok := plainInteger(name)
	if !ok {
		return 0, false
	}
	if d.numbers == nil {
		if v < int64(d.n) {
			return int32(v), true
		}
		return 0, false
	}
	k := sort.Search(d.n, func(k int) bool { return d.numbers[d.sorted(k)] >= v })
	if k < d.n && d.numbers[d.sorted(k)] == v {
		return int32(d.sorted(k)), true
	}
	return 0, false
}

func (d *IDs) sorted(k int) int {
	if d.order != nil {
		return int(d.order[k])
	}
	return k
}

// pick returns the ids of the given indices, renumbered 0..len(keep)-1.
func (d *IDs) pick(keep []int32) *IDs {
	switch {
	case d.ends != nil:
		names := make([]string, len(keep))
		for k, i := range keep {
			names[k] = d.textName(int(i))
		}
		ids, _ := newTextIDs(names) // a subset of distinct names stays distinct and no longer
		return ids
	case d.numbers != nil:
		numbers := make([]int64, len(keep))
		for k, i := range keep {
			numbers[k] = d.numbers[i]
		}
		ids, _ := newNumericIDs(numbers)
		return ids
	}
	numbers := make([]int64, len(keep))
	for k, i := range keep {
		numbers[k] = int64(i)
	}
	ids, _ := newNumericIDs(numbers)
	return ids
}

func (d *IDs) memoryBytes() int64 {
	if d == nil {
		return 0
	}
	return int64(len(d.numbers))*8 + int64(len(d.text)) + int64(len(d.ends)+len(d.order))*4
}

// plainInteger parses a decimal integer written the one canonical way (no sign, no leading zero), so that
// formatting the number gives the name back.
func plainInteger[S string | []byte](s S) (int64, bool) {
	if len(s) == 0 || len(s) > 18 || (s[0] == '0' && len(s) > 1) {
		return 0, false
	}
	v := int64(0)
	for i := 0; i < len(s); i++ {
		c := s[i] - '0'
		if c > 9 {
			return 0, false
		}
		v = v*10 + int64(c)
	}
	return v, true
}

// Forms of the encoding of IDs.
const (
	idsIdentity = 0
	idsNumbers  = 1
	idsText     = 2
)

// MarshalBinary encodes the ids: form (one byte: 0 identity, 1 numbers, 2 text), count (uint64), then nothing, or
// the numbers (int64 each), or the ends of the names (uint32 each) followed by the names. All little-endian.
func (d *IDs) MarshalBinary() ([]byte, error) {
	le := binary.LittleEndian
	form := byte(idsIdentity)
	size := 9
	switch {
	case d.numbers != nil:
		form, size = idsNumbers, 9+8*d.n
	case d.ends != nil:
		form, size = idsText, 9+4*d.n+len(d.text)
	}
	b := append(make([]byte, 0, size), form)
	b = le.AppendUint64(b, uint64(d.n))
	for _, v := range d.numbers {
		b = le.AppendUint64(b, uint64(v))
	}
	for _, e := range d.ends {
		b = le.AppendUint32(b, e)
	}
	return append(b, d.text...), nil
}

// UnmarshalBinary replaces d by the ids encoded in b, which it does not keep.
func (d *IDs) UnmarshalBinary(b []byte) error {
	le := binary.LittleEndian
	if len(b) < 9 {
		return fmt.Errorf("dataset: encoded ids are %d bytes long, too short for their header", len(b))
	}
	form, n64, rest := b[0], le.Uint64(b[1:]), b[9:]
	if n64 > math.MaxInt32 {
		return fmt.Errorf("dataset: encoded ids claim %d entries, more than an int32 can number", n64)
	}
	n := int(n64)
	var ids IDs
	switch form {
	case idsIdentity:
		if len(rest) != 0 {
			return fmt.Errorf("dataset: %d stray bytes after encoded identity ids", len(rest))
		}
		ids = IDs{n: n}
	case idsNumbers:
		if len(rest) != 8*n {
			return fmt.Errorf("dataset: encoded numeric ids hold %d bytes where %d entries need %d", len(rest), n, 8*n)
		}
		ids = IDs{n: n, numbers: make([]int64, n)}
		for i := range ids.numbers {
			v := int64(le.Uint64(rest[8*i:]))
			if v < 0 || v >= 1e18 {
				return fmt.Errorf("dataset: encoded numeric id %d at index %d is out of range", v, i)
			}
			ids.numbers[i] = v
		}
	case idsText:
		if len(rest) < 4*n {
			return fmt.Errorf("dataset: encoded text ids hold %d bytes, too few for %d entries", len(rest), n)
		}
		text := rest[4*n:]
		ids = IDs{n: n, ends: make([]uint32, n)}
		last := uint32(0)
		for i := range ids.ends {
			e := le.Uint32(rest[4*i:])
			if e < last || uint64(e) > uint64(len(text)) {
				return fmt.Errorf("dataset: encoded text id %d ends at byte %d, outside the names", i, e)
			}
			ids.ends[i], last = e, e
		}
		if int(last) != len(text) {
			return fmt.Errorf("dataset: %d stray bytes after the encoded text ids", len(text)-int(last))
		}
		ids.text = string(text)
	default:
		return fmt.Errorf("dataset: unknown form %d of encoded ids", form)
	}
	if err := ids.index(); err != nil {
		return err
	}
	*d = ids
	return nil
}
