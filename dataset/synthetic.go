package dataset

import (
	"context"
	"math"
	"math/bits"
	"slices"
	"sync"
)

// synthRank is the rank of the part of synthetic ratings that is neither bias nor noise.
const synthRank = 8

// Standard deviations of the parts of a synthetic rating, on a scale 4.5 wide. In ML-1M, biases fitted with a ridge of 5
// have 0.35 (users) and 0.55 (items), of which 0.1 goes with the logarithm of popularity, and leave 0.90; the best
// factorizations leave about 0.85, of which rounding to whole stars alone is 0.29. Here, too, a factorization gains
// less over biases than they gain over the mean.
const (
	synthUserBias  = 0.45
	synthItemBias  = 0.52
	synthPopBias   = 0.11
	synthFactors   = 0.70
	synthNoise     = 0.80
	synthWidth     = 4.5
	synthCentre    = 0.56 // of the way from the lowest to the highest rating
	synthAffinity  = 0.35 // how much the liking of a user decides what she rates at all
	synthGenerator = 1    // to be raised whenever a seed begins to give other bits
)

// synthScale are the standard deviations of the products of single factors. Their squares, which sum to 1, are the
// shares 40, 20, 12, 9, 7, 5, 4 and 3 %: as in real ratings a few directions explain most.
var synthScale = [synthRank]float32{0.6324555, 0.4472136, 0.34641016, 0.3, 0.26457513, 0.22360680, 0.2, 0.17320508}

// Synthetic generates a set with exactly the users, items and ratings of shape, of which no two have the same user and
// item. Every item is rated at least once, and every user rates at least MinUserRatings items.
//
// A rating is the mid-scale plus a user bias, an item bias that grows with popularity, a product of
// rank 8 and noise, rounded to the scale. What a user rates depends on popularity and, less, on the same product, so
// that implicit models find something to learn as well. The result is determined by shape and seed, whatever
// the number of workers. Of opts, Workers and Progress are used.
func Synthetic(ctx context.Context, shape Shape, seed uint64, opts Options) (*Ratings, error) {
	shape, err := shape.withDefaults()
	if err != nil {
		return nil, err
	}
	g := &generator{Shape: shape, seed: seed}
	if err := g.prepare(ctx); err != nil {
		return nil, err
	}
	workers := opts.workers()
	r := &Ratings{users: g.Users, items: g.Items, scale: g.Scale}
	r.userIDs, r.itemIDs = IdentityIDs(g.Users), IdentityIDs(g.Items)
	r.userPtr = make([]int64, g.Users+1)
	for u, d := range g.degree {
		r.userPtr[u+1] = r.userPtr[u] + int64(d)
	}
	r.rowItem, r.rowVal = make([]int32, g.Ratings), make([]float32, g.Ratings)
	scratch := sync.Pool{New: func() any { return &userScratch{seen: make([]uint64, (g.Items+63)/64)} }}
	parts := min(g.Users, max(8*workers, 1+g.Ratings>>15))
	var mu sync.Mutex
	done := int64(0)
	err = parallel(ctx, workers, parts, func(p int) error {
		from, to := rowRange(r.userPtr, parts, p)
		s := scratch.Get().(*userScratch)
		defer scratch.Put(s)
		for u := from; u < to; u++ {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			a, b := r.userPtr[u], r.userPtr[u+1]
			g.user(u, s, r.rowItem[a:b], r.rowVal[a:b])
		}
		if opts.Progress != nil {
			mu.Lock()
			done += r.userPtr[to] - r.userPtr[from]
			opts.Progress("generate", done, int64(g.Ratings))
			mu.Unlock()
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := r.finish(ctx, workers); err != nil {
		return nil, err
	}
	r.info = Info{Name: shape.Name, Source: "synthetic", Synthetic: true, Seed: seed}
	if r.info.Name == "" {
		r.info.Name = "synthetic"
	}
	r.info.SHA256 = r.ContentSHA256()
	return r, nil
}

// generator holds what the users share; user draws one of them.
type generator struct {
	Shape
	seed     uint64
	degree   []int     // ratings of each user
	founded  [][]int32 // items whose first rating comes from the user; nil for most
	table    aliasTable
	weight   []uint64 // of each item, as in table
	itemBias []float32
	factors  []float32 // items × synthRank
}

func (g *generator) prepare(ctx context.Context) error {
	counts := g.activity()
	s := newStream(g.seed, purposeActivity, 0)
	shuffle(&s, counts)
	g.degree = counts

	wanted := g.popularity()
	s = newStream(g.seed, purposeItemFactors, 0)
	shuffle(&s, wanted)
	weight, err := g.solveWeights(ctx, wanted)
	if err != nil {
		return err
	}
	g.weight = weight
	g.table = newAliasTable(weight)

	// Item parameters. The popular ones are rated somewhat higher.
	mean, square := 0.0, 0.0
	for _, w := range wanted {
		l := math.Log1p(w)
		mean += l
		square += l * l
	}
	n := float64(g.Items)
	mean /= n
	sd := math.Sqrt(max(square/n-mean*mean, 1e-12))
	g.itemBias = make([]float32, g.Items)
	g.factors = make([]float32, g.Items*synthRank)
	for i := range g.Items {
		z := math.Round((math.Log1p(wanted[i])-mean)/sd*1024) / 1024
		g.itemBias[i] = float32(synthItemBias*s.bell()) + float32(synthPopBias*z)
		for k := range synthRank {
			g.factors[i*synthRank+k] = synthScale[k] * s.bell()
		}
	}
	return g.found(ctx)
}

// found picks for every item a user who rates it for certain, in proportion to activity and for at most half of her
// ratings if possible.
func (g *generator) found(ctx context.Context) error {
	ends := make([]int, g.Users)
	total := 0
	for u, d := range g.degree {
		total += d
		ends[u] = total
	}
	g.founded = make([][]int32, g.Users)
	s := newStream(g.seed, purposeFounders, 0)
	free := 0 // users below are full
	for i := range g.Items {
		if i%4096 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		chosen := -1
		for range 30 {
			u, _ := slices.BinarySearch(ends, int(s.below(uint64(total)))+1)
			if len(g.founded[u]) < (g.degree[u]+1)/2 {
				chosen = u
				break
			}
		}
		for chosen < 0 {
			if len(g.founded[free]) < g.degree[free] {
				chosen = free
			} else {
				free++
			}
		}
		g.founded[chosen] = append(g.founded[chosen], int32(i))
	}
	return nil
}

// solveWeights finds weights with which sampling without replacement gives each item about the wanted number of
// ratings. A user of activity d takes item i with probability 1 - exp(-λ_d·w_i), where λ_d makes these sum to d; the
// most active users take nearly all popular items, so weights must grow faster than the counts wanted. Fixed-point
// iteration over groups of users of like activity. The result has 20 significant bits, so that rounding errors
// that differ between machines do not show.
func (g *generator) solveWeights(ctx context.Context, wanted []float64) ([]uint64, error) {
	sorted := slices.Clone(g.degree)
	slices.Sort(sorted)
	groups := min(24, g.Users)
	size, mean := make([]float64, groups), make([]float64, groups)
	for k := range groups {
		from, to := evenRange(g.Users, groups, k)
		sum := 0
		for _, d := range sorted[from:to] {
			sum += d
		}
		size[k] = float64(to - from)
		mean[k] = float64(sum) / size[k] * float64(g.Ratings-g.Items) / float64(g.Ratings)
	}
	w := slices.Clone(wanted)
	lambda := make([]float64, groups)
	total := max(float64(g.Ratings-g.Items), 1)
	for k := range lambda {
		lambda[k] = mean[k] / total
	}
	expected := make([]float64, len(w))
	for range 12 {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		clear(expected)
		for k := range groups {
			for range 2 { // Newton's method for λ; the start is good after the first round
				sum, slope := 0.0, 0.0
				for _, v := range w {
					e := math.Exp(-lambda[k] * v)
					sum += 1 - e
					slope += v * e
				}
				step := (mean[k] - sum) / max(slope, 1e-300)
				lambda[k] = min(max(lambda[k]+step, lambda[k]/4), lambda[k]*4)
			}
			for i, v := range w {
				expected[i] += size[k] * (1 - math.Exp(-lambda[k]*v))
			}
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
		}
		for i := range w {
			if expected[i] > 0 {
				w[i] *= min(max(wanted[i]/expected[i], 0.5), 2)
			}
		}
	}
	highest := slices.Max(w)
	out := make([]uint64, len(w))
	for i, v := range w {
		x := uint64(1)
		if highest > 0 {
			x = max(1, uint64(v/highest*(1<<36)))
		}
		if low := bits.Len64(x) - 20; low > 0 {
			x = (x + 1<<(low-1)) >> low << low
		}
		out[i] = x
	}
	return out, nil
}

// userScratch is reused between users by one worker.
type userScratch struct {
	seen   []uint64
	clocks []clock
}

type clock struct {
	at   float64
	item int32
}

// user fills in the items, ascending, and ratings of user u; both have the length of her activity.
func (g *generator) user(u int, scratch *userScratch, items []int32, vals []float32) {
	s := newStream(g.seed, purposeUserFactors, u)
	bias := float32(synthUserBias * s.bell())
	var p [synthRank]float32
	for k := range p {
		p[k] = s.bell()
	}
	s = newStream(g.seed, purposeUserItems, u)
	g.choose(&s, &p, scratch, g.founded[u], len(items))
	k := 0
	for w, word := range scratch.seen {
		for ; word != 0; word &= word - 1 {
			items[k] = int32(w<<6 + bits.TrailingZeros64(word))
			k++
		}
		scratch.seen[w] = 0
	}
	width := g.Scale.Max - g.Scale.Min
	unit := width / synthWidth
	centre := g.Scale.Min + float32(synthCentre*width)
	for k, i := range items {
		x := bias + g.itemBias[i]
		x += float32(synthFactors * g.affinity(&p, i))
		x += float32(synthNoise * s.bell())
		vals[k] = g.Scale.round(centre + float32(unit*x))
	}
}

// affinity is the product of the factors of a user and an item, of mean 0 and variance 1.
func (g *generator) affinity(p *[synthRank]float32, item int32) float32 {
	q := g.factors[int(item)*synthRank:][:synthRank]
	sum := float32(0)
	for k, v := range q {
		sum += float32(v * p[k])
	}
	return sum
}

// choose marks n items in scratch.seen: the given ones, and others drawn one after the other in proportion to weight
// and liking, without replacement.
func (g *generator) choose(s *stream, p *[synthRank]float32, scratch *userScratch, given []int32, n int) {
	seen := scratch.seen
	for _, i := range given {
		seen[i>>6] |= 1 << (i & 63)
	}
	n -= len(given)
	for tries := 4*g.Items + 64; n > 0 && tries > 0; tries-- {
		x := s.next()
		i := g.table.draw(x)
		if seen[i>>6]>>(i&63)&1 != 0 {
			continue
		}
		if float32(s.next()>>40)*(1.0/(1<<24)) >= g.liking(p, i) {
			continue
		}
		seen[i>>6] |= 1 << (i & 63)
		n--
	}
	if n == 0 {
		return
	}
	// She rates most of what there is, so that nearly every draw hits an item twice. The order in which exponential
	// clocks of these rates ring has the same distribution.
	scratch.clocks = scratch.clocks[:0]
	for i := range int32(g.Items) {
		if seen[i>>6]>>(i&63)&1 == 0 {
			rate := float64(g.weight[i]) * float64(g.liking(p, i))
			scratch.clocks = append(scratch.clocks, clock{-math.Log(s.unit()) / rate, i})
		}
	}
	slices.SortFunc(scratch.clocks, func(a, b clock) int {
		switch {
		case a.at < b.at:
			return -1
		case a.at > b.at:
			return 1
		}
		return int(a.item - b.item)
	})
	for _, c := range scratch.clocks[:n] {
		seen[c.item>>6] |= 1 << (c.item & 63)
	}
}

// liking is the probability that a user who comes upon an item rates it.
func (g *generator) liking(p *[synthRank]float32, item int32) float32 {
	return min(max(0.5+float32(synthAffinity*g.affinity(p, item)), 0.05), 1)
}

// round moves x to the nearest rating of the scale.
func (s Scale) round(x float32) float32 {
	if s.Step > 0 {
		x = s.Min + float32(s.Step*float32(math.RoundToEven(float64((x-s.Min)/s.Step))))
	}
	return min(max(x, s.Min), s.Max)
}

// aliasTable draws from a discrete distribution in constant time (Walker 1977, in the construction of Vose 1991). It works
// on integers and is therefore the same everywhere.
type aliasTable []struct {
	keep  uint32 // of 2³²: the share of this cell that stays with its own index
	other int32
}

func newAliasTable(weight []uint64) aliasTable {
	n := uint64(len(weight))
	total := uint64(0)
	for _, w := range weight {
		total += w
	}
	// Cell i begins with weight[i]·n and must end with total. The products stay below 2⁶⁴: weights are at most 2³⁶.
	left := make([]uint64, n)
	var small, large []int32
	for i, w := range weight {
		left[i] = w * n
		if left[i] < total {
			small = append(small, int32(i))
		} else {
			large = append(large, int32(i))
		}
	}
	t := make(aliasTable, n)
	for i := range t {
		t[i].keep, t[i].other = math.MaxUint32, int32(i)
	}
	for len(small) > 0 && len(large) > 0 {
		a, b := small[len(small)-1], large[len(large)-1]
		small = small[:len(small)-1]
		share, _ := bits.Div64(left[a]>>32, left[a]<<32, total)
		t[a].keep, t[a].other = uint32(share), b
		left[b] -= total - left[a]
		if left[b] < total {
			large = large[:len(large)-1]
			small = append(small, b)
		}
	}
	return t
}

// draw turns 64 random bits into an index.
func (t aliasTable) draw(x uint64) int32 {
	i := int32(uint64(uint32(x)) * uint64(len(t)) >> 32)
	if uint32(x>>32) < t[i].keep {
		return i
	}
	return t[i].other
}
