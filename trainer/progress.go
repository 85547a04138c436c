package trainer

import (
	"fmt"
	"strings"
	"time"
)

// Progress reports one finished iteration.
type Progress struct {
	Iteration, Iterations int           // 1-based, and how many there will be
	Elapsed               time.Duration // since training began
	UserTime, ItemTime    time.Duration // of this iteration's two halves

	// Objective is the regularized loss that the last half-step minimized,
	// evaluated after it; TrainRMSE is the root mean squared error over the training ratings then (0
	// for losses over unobserved pairs too). For a private trainer both are
	// computed from ratings without noise: they are for the operator's eyes, are
	// not covered by the privacy statement, and must not be published.
	Objective, TrainRMSE float64
}

// MemoryPlan lists what a training run will allocate, before it does.
type MemoryPlan struct {
	Parts []MemoryPart
}

// MemoryPart is one line of a MemoryPlan.
type MemoryPart struct {
	Name  string
	Bytes int64
}

// Add appends a part and returns the plan.
func (p *MemoryPlan) Add(name string, bytes int64) *MemoryPlan {
	p.Parts = append(p.Parts, MemoryPart{name, bytes})
	return p
}

// Total is the sum of the parts in bytes.
func (p MemoryPlan) Total() int64 {
	var total int64
	for _, part := range p.Parts {
		total += part.Bytes
	}
	return total
}

// String lists the parts and the total in MB.
func (p MemoryPlan) String() string {
	var b strings.Builder
	for i, part := range p.Parts {
		if i > 0 {
			b.WriteString(" + ")
		}
		fmt.Fprintf(&b, "%s %.1f MB", part.Name, float64(part.Bytes)/1e6)
	}
	fmt.Fprintf(&b, " = %.1f MB", float64(p.Total())/1e6)
	return b.String()
}

// Check returns an error if the plan exceeds limit bytes; limit ≤ 0 means none.
func (p MemoryPlan) Check(limit int64) error {
	if limit > 0 && p.Total() > limit {
		return fmt.Errorf("training needs %.1f MB but only %.1f MB are allowed (%s): raise the limit or lower the rank",
			float64(p.Total())/1e6, float64(limit)/1e6, p)
	}
	return nil
}
