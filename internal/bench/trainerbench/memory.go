package trainerbench

import (
	"fmt"

	"github.com/dpmf-go/dpmf/dataset"
	"github.com/dpmf-go/dpmf/internal/bench/report"
)

// Plan lists, before anything is trained, what each protocol will need besides the data: its split and the largest of
// its trainers. Trainers are planned for the whole data, which bounds every training part from above. The error
// is that of a configuration no trainer accepts.
func Plan(data *dataset.Ratings, trainers []Trainer, p Params) ([]report.Memory, error) {
	var plan []report.Memory
	p.MaxMemory = 0
	for _, protocol := range []Protocol{Explicit, Implicit} {
		needed := false
		for _, t := range trainers {
			if t.Protocol != protocol {
				continue
			}
			needed = true
			var largest report.Memory
			for _, epsilon := range t.targets(p) {
				job, err := t.prepare(data, p, epsilon)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", t.title(epsilon), err)
				}
				if total := job.plan.Total(); total > largest.Bytes {
					largest = report.Memory{What: fmt.Sprintf("%s %s r=%d", t.Name, protocol, job.rank), Bytes: total, Parts: job.plan.String()}
				}
			}
			largest.Phase = string(protocol)
			plan = append(plan, largest)
		}
		if needed {
			plan = append(plan, report.Memory{
				What: fmt.Sprintf("split for the %s protocol", protocol), Phase: string(protocol), Shared: true,
				Bytes: SplitBytes(data, protocol), Parts: "training and test parts by user and by item",
			})
		}
	}
	return plan, nil
}
