package trainerbench

import (
	"fmt"

	"github.com/dpmf-go/dpmf/dataset"
	"github.com/dpmf-go/dpmf/internal/bench/report"
)

// Plan lists, before anything is trained, what each protocol will need besides the data: its split and the largest run
// of each trainer. Trainers are planned for the whole data, which bounds every training part from above.
func Plan(data *dataset.Ratings, trainers []Trainer, p Params) []report.Memory {
	var plan []report.Memory
	for _, protocol := range protocols {
		largest := map[string]int{} // where in the plan each trainer is
		for _, j := range jobs(trainers, protocol, p, data.NumUsers()) {
			needs := j.plan(data)
			at, known := largest[j.name]
			if !known {
				at = len(plan)
				largest[j.name] = at
				plan = append(plan, report.Memory{Phase: string(protocol)})
			}
			if total := needs.Total(); total > plan[at].Bytes {
				plan[at].What = fmt.Sprintf("%s %s r=%d", j.name, protocol, j.rank)
				plan[at].Bytes, plan[at].Parts = total, needs.String()
			}
		}
		if split := SplitBytes(data, protocol); len(largest) > 0 && split > 0 {
			plan = append(plan, report.Memory{
				What: fmt.Sprintf("split for the %s protocol", protocol), Phase: string(protocol), Shared: true,
				Bytes: split, Parts: "training and test parts by user and by item",
			})
		}
	}
	return plan
}
