package als

import (
	"context"
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/dpmf-go/dpmf/dataset"
	"github.com/dpmf-go/dpmf/trainer"
)

// dense is an independent implementation in float64. It holds the loss as it is defined,
// a weight and a target for every pair of user and item, and solves the normal
// equations over all pairs.
type dense struct {
	rank            int
	weight, target  *mat.Dense // users × items
	base            *mat.Dense // subtracted from ratings; zero for implicit losses
	users, items    *mat.Dense // factors
	userRidge, item []float64
	constant        float64
}

func newDense(r *dataset.Ratings, c Config) *dense {
	n, m := r.NumUsers(), r.NumItems()
	d := &dense{
		rank: c.Rank, weight: mat.NewDense(n, m, nil), target: mat.NewDense(n, m, nil), base: mat.NewDense(n, m, nil),
		users: mat.NewDense(n, c.Rank, nil), items: mat.NewDense(m, c.Rank, nil),
	}
	for k, v := range InitialFactors(m, c.Rank, c.InitStd, c.Seed) {
		d.items.Set(k/c.Rank, k%c.Rank, float64(v))
	}
	d.means(r, c.Means)
	for u := range n {
		for i := range m {
			value, observed := r.Value(u, i)
			switch c.Loss.Kind {
			case trainer.Explicit:
				// Observed: (rating − base − score)² + a0·score², the second term for all pairs.
				d.weight.Set(u, i, c.Loss.Background)
				if observed {
					w := 1 + c.Loss.Background
					t := (float64(value) - d.base.At(u, i)) / w
					d.weight.Set(u, i, w)
					d.target.Set(u, i, t)
					// w(t−s)² = (wt−s)² + a0·s² − constant
					d.constant += w*w*t*t - w*t*t
				}
			case trainer.Unobserved:
				d.weight.Set(u, i, c.Loss.Background)
				if observed {
					w := 1 + c.Loss.Background
					d.weight.Set(u, i, w)
					d.target.Set(u, i, 1/w)
					d.constant += 1 - 1/w
				}
			case trainer.Confidence:
				d.weight.Set(u, i, 1)
				if observed && value > 0 {
					d.weight.Set(u, i, 1+c.Loss.Alpha*float64(value))
					d.target.Set(u, i, 1)
				}
			}
		}
		d.userRidge = append(d.userRidge, ridgeAt(c.UserRidge, r.UserCount(u)))
	}
	for i := range m {
		d.item = append(d.item, ridgeAt(c.ItemRidge, r.ItemCount(i)))
	}
	return d
}

func ridgeAt(r trainer.Ridge, n int) float64 {
	constant := r.Constant
	if constant == 0 {
		constant = 1
	}
	return r.Lambda * math.Pow(float64(n+1), r.Exponent) / constant
}

// means fills base: the averages one after the other, each shrunk and on what the previous leave.
func (d *dense) means(r *dataset.Ratings, m trainer.Means) {
	users, items := r.NumUsers(), r.NumItems()
	add := func(inGroup func(u, i, g int) bool, g int, shrinkage float64) {
		var sum, n float64
		for u := range users {
			for i := range items {
				if v, ok := r.Value(u, i); ok && inGroup(u, i, g) {
					sum += float64(v) - d.base.At(u, i)
					n++
				}
			}
		}
		if n == 0 {
			return
		}
		for u := range users {
			for i := range items {
				if inGroup(u, i, g) {
					d.base.Set(u, i, d.base.At(u, i)+sum/(n+shrinkage))
				}
			}
		}
	}
	if m.Global {
		add(func(u, i, g int) bool { return true }, 0, 0)
	}
	if m.Item {
		for i := range items {
			add(func(_, i, g int) bool { return i == g }, i, m.Shrinkage)
		}
	}
	if m.User {
		for u := range users {
			add(func(u, _, g int) bool { return u == g }, u, m.Shrinkage)
		}
	}
}

// half solves all rows of x (factors of one side) against y, with w and t transposed by the caller.
func (d *dense) half(x, y *mat.Dense, w, t mat.Matrix, ridge []float64) {
	rows, _ := x.Dims()
	others, _ := y.Dims()
	for row := range rows {
		a, b := mat.NewSymDense(d.rank, nil), mat.NewVecDense(d.rank, nil)
		for c := range d.rank {
			a.SetSym(c, c, ridge[row])
		}
		for o := range others {
			a.SymRankOne(a, w.At(row, o), y.RowView(o))
			b.AddScaledVec(b, w.At(row, o)*t.At(row, o), y.RowView(o))
		}
		var solution mat.VecDense
		if err := solution.SolveVec(a, b); err != nil {
			panic(err)
		}
		x.SetRow(row, solution.RawVector().Data)
	}
}

func (d *dense) userHalf() { d.half(d.users, d.items, d.weight, d.target, d.userRidge) }
func (d *dense) itemHalf() { d.half(d.items, d.users, d.weight.T(), d.target.T(), d.item) }

// objective is the loss over all pairs with both penalties.
func (d *dense) objective() float64 {
	sum := d.constant
	for u, ridge := range d.userRidge {
		for i := range d.item {
			e := d.target.At(u, i) - mat.Dot(d.users.RowView(u), d.items.RowView(i))
			sum += d.weight.At(u, i) * e * e
		}
		sum += ridge * mat.Dot(d.users.RowView(u), d.users.RowView(u))
	}
	for i, ridge := range d.item {
		sum += ridge * mat.Dot(d.items.RowView(i), d.items.RowView(i))
	}
	return sum
}

// allLosses are configurations of every kind of loss and every combination of means.
func allLosses(rank int) map[string]Config {
	configs := map[string]Config{}
	base := Defaults(rank)
	base.Seed, base.InitStd, base.NoClamp = 11, 0.5, true
	for bits := range 8 {
		c := base
		c.Means = trainer.Means{Global: bits&1 > 0, Item: bits&2 > 0, User: bits&4 > 0, Shrinkage: float64(bits % 3)}
		configs[fmt.Sprintf("explicit, means %+v", c.Means)] = c
	}
	c := base
	c.Loss.Background = 0.2
	configs["explicit with background"] = c
	c = base
	c.Means = trainer.Means{}
	c.UserRidge, c.ItemRidge = trainer.Ridge{Lambda: 0.7}, trainer.Ridge{Lambda: 2, Exponent: 1, Constant: 10}
	for _, a0 := range []float64{0, 0.1, 3} {
		c.Loss = trainer.Loss{Kind: trainer.Unobserved, Background: a0}
		configs[fmt.Sprintf("unobserved, a0 = %v", a0)] = c
	}
	for _, alpha := range []float64{0.1, 40} {
		c.Loss = trainer.Loss{Kind: trainer.Confidence, Alpha: alpha}
		configs[fmt.Sprintf("confidence, alpha = %v", alpha)] = c
	}
	return configs
}

func TestAgainstDenseLossOverAllPairs(t *testing.T) {
	for name, c := range allLosses(5) {
		t.Run(name, func(t *testing.T) {
			r := smallRatings(t, 23, 17, 3)
			c.Iterations = 3
			d := newDense(r, c)
			c.Progress = func(p trainer.Progress) {
				d.userHalf()
				d.itemHalf()
				if want := d.objective(); math.Abs(p.Objective-want) > 1e-4*want {
					t.Errorf("iteration %d: objective %v, directly evaluated %v", p.Iteration, p.Objective, want)
				}
				if want := d.trainRMSE(r, c); c.Loss.Kind == trainer.Explicit && c.Loss.Background == 0 && math.Abs(p.TrainRMSE-want) > 1e-4 {
					t.Errorf("iteration %d: training RMSE %v, directly evaluated %v", p.Iteration, p.TrainRMSE, want)
				}
			}
			m, err := Train(context.Background(), r, c)
			if err != nil {
				t.Fatal(err)
			}
			d.userHalf()
			for u := range r.NumUsers() {
				for i := range r.NumItems() {
					want := d.base.At(u, i)
					if r.UserCount(u) > 0 && r.ItemCount(i) > 0 {
						want += mat.Dot(d.users.RowView(u), d.items.RowView(i))
					}
					if got := float64(m.Predict(u, i)); math.Abs(got-want) > 2e-3 {
						t.Fatalf("prediction of user %d, item %d is %v, want %v", u, i, got, want)
					}
				}
			}
		})
	}
}

func (d *dense) trainRMSE(r *dataset.Ratings, c Config) float64 {
	var sum float64
	for u := range r.NumUsers() {
		items, values := r.User(u)
		for k, i := range items {
			e := float64(values[k]) - d.base.At(u, int(i)) - mat.Dot(d.users.RowView(u), d.items.RowView(int(i)))
			sum += e * e
		}
	}
	return math.Sqrt(sum / float64(r.NumRatings()))
}

func TestObjectiveNeverIncreases(t *testing.T) {
	r := smallRatings(t, 120, 80, 4)
	for name, c := range allLosses(6) {
		t.Run(name, func(t *testing.T) {
			c.Iterations = 25
			last := math.Inf(1)
			c.Progress = func(p trainer.Progress) {
				if !(p.Objective <= last*(1+1e-5)) {
					t.Errorf("iteration %d: objective rose from %v to %v", p.Iteration, last, p.Objective)
				}
				if p.Iteration > 1 && p.Iteration < 4 && last < math.Inf(1) && p.Objective == last {
					t.Errorf("iteration %d: objective stands still at %v", p.Iteration, last)
				}
				last = p.Objective
			}
			if _, err := Train(context.Background(), r, c); err != nil {
				t.Fatal(err)
			}
		})
	}
}
