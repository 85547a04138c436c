// Package report is what one run of bench measured: the types behind the JSON file, its validation, and the HTML
// page. docs/bench-json.md describes the file to its readers; both change together.
package report

import (
	"slices"
	"time"
)

// Schema is the version of the JSON file. It grows when a reader of the old version could misread the new one;
// additional keys do not count.
const Schema = 1

// Report is one run. Sections that did not run are absent, and those that were interrupted are shorter.
type Report struct {
	Schema      int       `json:"schema"`
	Started     time.Time `json:"started"`
	Seconds     Number    `json:"seconds"` // wall clock until the report was written
	Command     []string  `json:"command"`
	Interrupted bool      `json:"interrupted"`
	Synthetic   bool      `json:"synthetic"` // the same as Data.Synthetic, where nobody can miss it
	Warnings    []string  `json:"warnings"`
	Machine     Machine   `json:"machine"`
	Data        *Data     `json:"data,omitempty"`
	Memory      []Memory  `json:"memory"`
	MemoryPeak  int64     `json:"memory_planned_bytes"`
	Resident    int64     `json:"memory_resident_peak_bytes,omitempty"` // what the system saw
	Kernels     []Kernel  `json:"kernels"`
	Trainers    []Trainer `json:"trainers"`
	Baselines   []Trainer `json:"baselines"` // the trivial predictors on the same splits
}

// Machine is the computer and its two limits, each measured on one core.
type Machine struct {
	CPU        string            `json:"cpu"`
	Model      string            `json:"cpu_model,omitempty"` // family, model and stepping
	Cores      int               `json:"cores"`
	Threads    int               `json:"threads"` // used by the trainers
	Tier       string            `json:"tier"`
	TierReason string            `json:"tier_reason"`
	Go         string            `json:"go"`
	OS         string            `json:"os"`
	Arch       string            `json:"arch"`
	Memory     int64             `json:"memory_available_bytes,omitempty"`
	FMAPeak    Number            `json:"fma_peak_gflops"` // of the tier in use
	FMAPeaks   map[string]Number `json:"fma_peaks_gflops"`
	ReadGBs    Number            `json:"read_gbs"`       // main memory, of the tier in use
	ReadBytes  int64             `json:"read_set_bytes"` // how much was read for that
}

// Data is the data set.
type Data struct {
	Name      string `json:"name"`
	Users     int    `json:"users"`
	Items     int    `json:"items"`
	Ratings   int    `json:"ratings"`
	Synthetic bool   `json:"synthetic"`
	SHA256    string `json:"sha256"`

	Source       string `json:"source"`
	Mean         Number `json:"mean"`
	FromCache    bool   `json:"from_cache"`
	OpenSeconds  Number `json:"open_seconds"`
	SourceBytes  int64  `json:"source_bytes,omitempty"`
	OpenMBs      Number `json:"open_mb_per_second"` // of the source file; null if nothing was parsed
	MemoryBytes  int64  `json:"memory_bytes"`
	Duplicates   int64  `json:"duplicates"`
	SkippedLines int64  `json:"skipped_lines"`
}

// Memory is one planned use of memory. All of a phase's shared parts are held at a time with one of its others; the
// phases follow one another, except "data", which lasts.
type Memory struct {
	Phase  string `json:"phase"` // data, kernels, explicit or implicit
	What   string `json:"what"`
	Bytes  int64  `json:"bytes"`
	Shared bool   `json:"shared"`
	Parts  string `json:"parts,omitempty"`
}

// DataPhase is the phase of what is held from beginning to end.
const DataPhase = "data"

// Peak is the most memory held at a time, and the uses that make it up.
func Peak(plan []Memory) (bytes int64, uses []Memory) {
	var always int64
	var lasting []Memory
	for _, m := range plan {
		if m.Phase == DataPhase {
			always += m.Bytes
			lasting = append(lasting, m)
		}
	}
	bytes, uses = always, lasting
	for _, m := range plan {
		if m.Phase == DataPhase || m.Shared {
			continue
		}
		total, parts := always+m.Bytes, append(slices.Clone(lasting), m)
		for _, other := range plan {
			if other.Shared && other.Phase == m.Phase {
				total += other.Bytes
				parts = append(parts, other)
			}
		}
		if total > bytes {
			bytes, uses = total, parts
		}
	}
	return bytes, uses
}

// Kernel is one kernel at one size on one tier, or a library doing the same.
type Kernel struct {
	Name  string `json:"name"`
	Tier  string `json:"tier"` // generic, avx2, avx512, or the name of a library
	Size  string `json:"size"`
	Rate  Number `json:"rate"` // median over the rounds
	Unit  string `json:"unit"` // GFLOP/s, GB/s: more is better. µs: less is better
	Share Number `json:"share"`
	Min   Number `json:"min"`
	Max   Number `json:"max"`

	ShareOf      string `json:"share_of,omitempty"`      // "fma" or "read": the limit that Share is a part of
	Limit        Number `json:"limit"`                   // that limit, in the same rounds; GFLOP/s or GB/s
	Ratio        Number `json:"ratio"`                   // speed relative to the tier below; null for the lowest
	RatioTo      string `json:"ratio_to,omitempty"`      // what Ratio compares with
	Scaled       Number `json:"at_115_gflops"`           // µs only: at an FMA peak of 115 GFLOP/s
	Required     Number `json:"required"`                // the floor this project set itself; null if none
	RequiredWhat string `json:"required_what,omitempty"` // "share ≥", "µs at 115 GFLOP/s ≤" or "ratio to avx512 ≥"
	Reached      Number `json:"required_value"`          // the measured value of the same quantity
	OK           *bool  `json:"required_reached,omitempty"`
	Rounds       int    `json:"rounds"`
}

// Trainer is one training run and its quality, or a baseline.
type Trainer struct {
	Name             string            `json:"name"`
	Rank             int               `json:"rank"`
	Threads          int               `json:"threads"`
	IterationSeconds Number            `json:"iteration_seconds"` // median
	RatingsPerSecond Number            `json:"ratings_per_second"`
	Metrics          map[string]Number `json:"metrics"` // means over the repeats of rmse, recall@20, recall@50, ndcg@100
	Epsilon          Number            `json:"epsilon"` // spent, computed from the ledger; null: no guarantee
	Delta            Number            `json:"delta"`
	Unit             string            `json:"unit"` // who is protected

	Repeats    int               `json:"repeats"` // finished; each has its own split, initial factors and noise
	MetricsMin map[string]Number `json:"metrics_min"`
	MetricsMax map[string]Number `json:"metrics_max"`

	Protocol     string `json:"protocol"` // explicit, implicit or speed
	Synthetic    bool   `json:"synthetic"`
	Iterations   int    `json:"iterations"`
	IterationMin Number `json:"iteration_seconds_min"`
	IterationMax Number `json:"iteration_seconds_max"`
	UserSeconds  Number `json:"user_seconds"` // median of the half
	ItemSeconds  Number `json:"item_seconds"`
	TotalSeconds Number `json:"total_seconds"` // of training; mean over the repeats
	EvalSeconds  Number `json:"evaluation_seconds"`
	TrainRatings int    `json:"train_ratings"`
	TestUsers    int    `json:"test_users,omitempty"` // implicit protocol
	Target       Number `json:"target_epsilon"`       // asked for; null: none
	TunedOn      string `json:"tuned_on,omitempty"`   // what the hyper-parameters were chosen on; no ε covers that
	SeededNoise  bool   `json:"seeded_noise"`         // the noise can be computed from the seed: a benchmark, not a release
	Config       any    `json:"config,omitempty"`
	Privacy      string `json:"privacy"` // the model's own words
	MemoryBytes  int64  `json:"memory_bytes"`
}

// SameRun reports whether two rows are results of the same trainer with the same rank and target on the same protocol.
func (t Trainer) SameRun(o Trainer) bool {
	sameTarget := t.Target == o.Target || !t.Target.Finite() && !o.Target.Finite()
	return t.Name == o.Name && t.Protocol == o.Protocol && t.Rank == o.Rank && sameTarget
}

// Put returns the list with the row in place of the one of the same run, or at the end.
func Put(list []Trainer, row Trainer) []Trainer {
	for k := range list {
		if list[k].SameRun(row) {
			list[k] = row
			return list
		}
	}
	return append(list, row)
}
