// Package dpals trains factorizations by alternating least squares under
// user-level differential privacy (Chien et al. 2021, with
// corrected sensitivities: docs/privacy.md).
//
// The guarantee is joint differential privacy: whatever one user's ratings are, the
// item factors, and with them everything other users get to see, are
// (ε, δ)-indistinguishable from a run without that user. A user's own factors depend
// on her own ratings without noise and are for her alone.
package dpals

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/dpmf-go/dpmf/dataset"
	"github.com/dpmf-go/dpmf/kernels"
	"github.com/dpmf-go/dpmf/privacy"
	"github.com/dpmf-go/dpmf/trainer"
	"github.com/dpmf-go/dpmf/trainer/als"
	"github.com/dpmf-go/dpmf/trainer/internal/normal"
)

// Releases number the noise streams: each (release, iteration, item) is drawn once.
const (
	streamCounts uint32 = 1 + iota
	streamCentreSum
	streamCentreCount
	streamGlobal
	streamItem // the Gram matrix, then the right-hand side
)

// Train fits the factors within the budget. It returns an error for a bad
// configuration, an empty data set, an impossible budget, too little memory, or the context's
// cause soon after ctx is done; an error releases nothing.
func Train(ctx context.Context, train *dataset.Ratings, c Config) (*trainer.Model, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if train.NumRatings() == 0 {
		return nil, errors.New("dpals: the training data hold no ratings")
	}
	if err := Plan(train, c).Check(c.MaxMemory); err != nil {
		return nil, fmt.Errorf("dpals: %w", err)
	}
	r, err := newRun(train, c)
	if err != nil {
		return nil, err
	}
	if err := r.prepare(ctx); err != nil {
		return nil, err
	}
	if err := r.iterate(ctx); err != nil {
		return nil, err
	}
	r.ledger.Seal()
	return r.model, nil
}

// run is the state of one training run.
type run struct {
	Config
	train    *dataset.Ratings
	model    *trainer.Model
	noise    *privacy.Noise
	releases privacy.DPALSReleases
	ledger   *privacy.Ledger

	counts   []float64 // noisy
	frequent []bool
	parts    contributions

	streams streamPool
}

func newRun(train *dataset.Ratings, c Config) (*run, error) {
	r := &run{Config: c, train: train}
	if c.Budget.IsPrivate() && c.Loss.Kind == trainer.Explicit && c.ScaleMin == 0 && c.ScaleMax == 0 && train.Info().ScaleFromRatings {
		return nil, errors.New("dpals: the rating scale was read off the ratings, and the model would release it without noise: give the public scale as ScaleMin and ScaleMax, or with the data")
	}
	var err error
	if r.releases, err = c.calibrate(train.NumItems()); err != nil {
		return nil, err
	}
	var source privacy.Source
	if c.Budget.IsPrivate() {
		r.noise = privacy.NewNoise()
		if c.NoiseSeed != nil {
			r.noise = privacy.NewSeededNoise(privacy.Seed(*c.NoiseSeed))
		}
		source = r.noise.Source()
	}
	if r.ledger, err = privacy.NewLedger(privacy.UserLevel, c.Budget.Delta, source); err != nil {
		return nil, fmt.Errorf("dpals: %w", err)
	}
	config, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("dpals: encode the configuration: %w", err)
	}
	r.model = &trainer.Model{
		Algorithm: "dpals", Config: config, Rank: c.Rank,
		UserFactors: make([]float32, train.NumUsers()*c.Rank),
		ItemFactors: als.InitialFactors(train.NumItems(), c.Rank, c.InitStd, c.Seed),
		FoldIn:      trainer.FoldIn{Loss: c.Loss, Ridge: c.UserRidge},
		UserIDs:     train.UserIDs(), ItemIDs: train.ItemIDs(), Seen: train,
		Ledger: r.ledger,
	}
	if c.Loss.Kind == trainer.Explicit {
		r.model.ClampMin, r.model.ClampMax = r.scale()
		if !math.IsInf(c.RatingBound, 1) {
			r.model.FoldIn.ClipBound = c.RatingBound
		}
	}
	return r, nil
}

// record notes a release in the ledger. Without privacy there is nothing to note: a ledger
// without releases claims nothing.
func (r *run) record(release privacy.Release) error {
	if r.noise == nil {
		return nil
	}
	if err := r.ledger.Record(release); err != nil {
		return fmt.Errorf("dpals: %w", err)
	}
	return nil
}

// prepare centres ratings, counts items, and limits what each user contributes.
func (r *run) prepare(ctx context.Context) error {
	if err := r.centre(); err != nil {
		return err
	}
	r.counts = countItems(r.train, r.CountItems, r.Seed)
	if r.noise != nil {
		if err := r.record(r.releases.Counts); err != nil {
			return err
		}
		r.noise.Stream(streamCounts, 0, 0).AddVector64(r.counts, r.releases.Counts.Noise)
	}
	for i, c := range r.counts {
		r.counts[i] = max(1, c)
	}
	r.frequent = frequentItems(r.counts, r.Config.frequent(r.train.NumItems()))
	r.parts = r.contributions()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for i, f := range r.frequent {
		if !f {
			clear(r.model.ItemFactors[i*r.Rank:][:r.Rank])
		}
	}
	if r.Limit == Unlimited {
		return nil
	}
	return r.parts.checkBudget(r.train.NumItems(), r.train.NumUsers(), r.ItemsPerUser)
}

// contributions limits what each user adds to the statistics of the frequent items.
func (r *run) contributions() contributions {
	switch r.Limit {
	case Unlimited:
		return contributions{of: func(item int) ([]int32, []float32) {
			if !r.frequent[item] {
				return nil, nil
			}
			return r.train.Item(item)
		}}
	case Adaptive:
		return adaptiveContributions(r.train, r.counts, r.frequent, r.ItemsPerUser, r.CountExponent)
	default:
		return sampledContributions(r.train, r.counts, r.frequent, r.ItemsPerUser, r.Limit, r.Seed)
	}
}

// scale is the public range of the ratings.
func (r *run) scale() (low, high float32) {
	if r.ScaleMin != 0 || r.ScaleMax != 0 {
		return r.ScaleMin, r.ScaleMax
	}
	low, high, _ = r.train.Scale()
	return low, high
}

// centre sets the offsets of explicit ratings.
func (r *run) centre() error {
	if r.Loss.Kind != trainer.Explicit {
		return nil
	}
	low, high := r.scale()
	o := &r.model.Offsets
	o.Global = low/2 + high/2
	switch r.Centring {
	case CentreUserMean:
		o.User = make([]float32, r.train.NumUsers())
		for u := range o.User {
			items, values := r.train.User(u)
			o.User[u] = o.FitUser(items, values, r.Shrinkage)
		}
		r.model.FoldIn.UserMean, r.model.FoldIn.Shrinkage = true, r.Shrinkage
	case CentrePrivateMean:
		return r.centrePrivately()
	}
	return nil
}

// centrePrivately releases (Σ_u clip(mean_u) + N) / (n + N), where mean_u is a user's mean about
// mid-scale, clipped to ±Γ_M: sensitivities Γ_M and 1.
func (r *run) centrePrivately() error {
	sum, count := r.clippedMeans()
	if r.noise != nil {
		for _, release := range []privacy.Release{r.releases.CentreSum, r.releases.CentreCount} {
			if err := r.record(release); err != nil {
				return err
			}
		}
		r.noise.Stream(streamCentreSum, 0, 0).AddVector64(sum, r.releases.CentreSum.Noise)
		r.noise.Stream(streamCentreCount, 0, 0).AddVector64(count, r.releases.CentreCount.Noise)
	}
	mean := sum[0] / max(1, count[0])
	r.model.Offsets.Global += float32(min(max(mean, -r.RatingBound), r.RatingBound))
	return nil
}

// clippedMeans sums the clipped means of the users who have any ratings, and counts these
// users. Both are slices of one element.
func (r *run) clippedMeans() (sum, count []float64) {
	sum, count = []float64{0}, []float64{0}
	for u := range r.train.NumUsers() {
		if items, values := r.train.User(u); len(items) > 0 {
			mean := float64(r.model.Offsets.FitUser(items, values, 0))
			sum[0] += min(max(mean, -r.RatingBound), r.RatingBound)
			count[0]++
		}
	}
	return sum, count
}

// iterate runs T times users, then items, and a last time users without clipping. The
// loss of an iteration's item factors is known when the next user half is done, so
// progress is reported then.
func (r *run) iterate(ctx context.Context) error {
	start := time.Now()
	clipped, items := r.userHalf(r.Clip), r.itemHalf()
	var p trainer.Progress
	for t := 1; t <= r.Iterations; t++ {
		began := time.Now()
		loss, err := r.runUsers(ctx, clipped)
		if err != nil {
			return fmt.Errorf("dpals: iteration %d, users: %w", t, err)
		}
		userTime := time.Since(began)
		r.report(&p, loss)
		middle := time.Now()
		if err := r.itemStep(ctx, items, t); err != nil {
			return fmt.Errorf("dpals: iteration %d, items: %w", t, err)
		}
		p = trainer.Progress{Iteration: t, Iterations: r.Iterations, UserTime: userTime, ItemTime: time.Since(middle), Elapsed: time.Since(start)}
	}
	loss, err := r.runUsers(ctx, r.userHalf(math.Inf(1)))
	if err != nil {
		return fmt.Errorf("dpals: last user step: %w", err)
	}
	r.report(&p, loss)
	return nil
}

func (r *run) report(p *trainer.Progress, loss normal.RowLoss) {
	if r.Progress == nil || p.Iteration == 0 {
		return
	}
	p.Objective = loss.Objective
	if r.Loss.Kind == trainer.Explicit && r.Loss.Background == 0 {
		p.TrainRMSE = math.Sqrt(max(0, loss.Squared) / float64(r.train.NumRatings()))
	}
	r.Progress(*p)
}

func (r *run) runUsers(ctx context.Context, h *normal.Half) (normal.RowLoss, error) {
	if err := als.Background(ctx, h, r.Loss, r.Workers); err != nil {
		return normal.RowLoss{}, err
	}
	return h.Run(ctx, r.Workers, r.model.UserFactors)
}

// userHalf is the ridge step of the users, without noise, followed by clipping their
// factors to norm ≤ clip. The loss is that before clipping.
func (r *run) userHalf(clip float64) *normal.Half {
	h := als.UserHalf(r.train, r.model, r.Loss, r.UserRidge)
	if math.IsInf(clip, 1) {
		return h
	}
	solve := h.Solve
	h.Solve = func(u int, w *normal.Workspace, x []float32) (normal.RowLoss, error) {
		loss, err := solve(u, w, x)
		if err == nil {
			clipNorm(x, clip)
		}
		return loss, err
	}
	return h
}

// clipNorm scales x to norm ≤ bound. The factor 1−2⁻²⁰ leaves room for rounding. Factors that overflowed become zero, so
// that one user's ratings cannot stop the run.
func clipNorm(x []float32, bound float64) {
	norm := math.Sqrt(squaredNorm(x))
	if math.IsNaN(norm) || math.IsInf(norm, 1) {
		clear(x)
		return
	}
	if norm*(1+0x1p-20) <= bound {
		return
	}
	kernels.ScaleF32(float32(bound/norm*(1-0x1p-20)), x)
}

// squaredNorm sums over four lanes, so that additions do not wait for each other.
func squaredNorm(x []float32) float64 {
	var s0, s1, s2, s3 float64
	for ; len(x) >= 4; x = x[4:] {
		a, b, c, d := float64(x[0]), float64(x[1]), float64(x[2]), float64(x[3])
		s0 += float64(a * a)
		s1 += float64(b * b)
		s2 += float64(c * c)
		s3 += float64(d * d)
	}
	for _, v := range x {
		s0 += float64(float64(v) * float64(v))
	}
	return (s0 + s2) + (s1 + s3)
}
