package report

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
)

// sample has a row of every kind, numbers that do not exist, and text that HTML must escape.
func sample() *Report {
	nan := Number(math.NaN())
	ok := true
	r := New(time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), []string{"--dataset=<x>"})
	r.Synthetic, r.Warnings = true, []string{"<script>alert(1)</script>"}
	r.Machine = Machine{CPU: "some CPU", Cores: 2, Tier: "avx512", Go: "go1.26", FMAPeak: 115, FMAPeaks: map[string]Number{"avx512": 115}}
	r.Data = &Data{Name: "ml20m", Users: 3, Items: 4, Ratings: 5, Synthetic: true, SHA256: "ab", OpenMBs: nan}
	r.Memory = []Memory{{Phase: DataPhase, What: "ratings", Bytes: 7}}
	r.Kernels = []Kernel{
		{Name: "GramF32", Tier: "avx512", Size: "r=32", Rate: 50, Min: 40, Max: 60, Unit: "GFLOP/s", Share: .5, ShareOf: "fma", Limit: 100, Ratio: 2, RatioTo: "avx2", Scaled: nan, Required: .44, Reached: .5, OK: &ok},
		{Name: "GramF32", Tier: "generic", Size: "r=32", Rate: 1, Min: 1, Max: 1, Unit: "GFLOP/s", Ratio: nan, Scaled: nan, Required: nan, Reached: nan},
		{Name: "CholeskySolveF32", Tier: "gonum", Size: "r=32", Rate: 20, Min: 10, Max: 30, Unit: "µs", Ratio: nan, Scaled: nan, Required: nan, Reached: nan},
	}
	r.Trainers = []Trainer{
		{Name: "als", Rank: 64, Threads: 2, Protocol: "explicit", IterationSeconds: 1, IterationMin: .9, IterationMax: 2, RatingsPerSecond: 1e7, Metrics: map[string]Number{"rmse": nan}, Epsilon: Number(math.Inf(1)), Delta: nan, Target: nan, Unit: "none", Privacy: "No privacy & no promise."},
		{Name: "dpals", Rank: 64, Threads: 2, Protocol: "implicit", IterationSeconds: 1, Metrics: map[string]Number{"recall@20": .3}, Repeats: 3, MetricsMin: map[string]Number{"recall@20": .28}, MetricsMax: map[string]Number{"recall@20": .31}, Epsilon: 1, Delta: 1e-6, Target: 1, Unit: "user add/remove", TunedOn: "ML-20M & more", SeededNoise: true},
	}
	r.Baselines = []Trainer{{Name: "item mean", Protocol: "explicit", Metrics: map[string]Number{"rmse": .9}, IterationSeconds: nan, Epsilon: nan, Unit: "none"}}
	return &r
}

// TestSchema holds the file to what scripts rely on: the keys, and their JSON types.
func TestSchema(t *testing.T) {
	var b bytes.Buffer
	if err := WriteJSON(&b, sample()); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got["schema"] != 1.0 || got["interrupted"] != false {
		t.Errorf("schema %v, interrupted %v", got["schema"], got["interrupted"])
	}
	row := func(list string, i int) map[string]any { return got[list].([]any)[i].(map[string]any) }
	for what, c := range map[string]struct {
		object map[string]any
		keys   string
	}{
		"machine": {got["machine"].(map[string]any), "cpu:string cores:float64 tier:string fma_peak_gflops:float64 go:string"},
		"data":    {got["data"].(map[string]any), "name:string users:float64 items:float64 ratings:float64 synthetic:bool sha256:string"},
		"kernel":  {row("kernels", 0), "name:string tier:string size:string rate:float64 unit:string share:float64 min:float64 max:float64"},
		"trainer": {row("trainers", 1), "name:string rank:float64 threads:float64 iteration_seconds:float64 ratings_per_second:float64 metrics:map epsilon:float64 delta:float64 unit:string"},
	} {
		for pair := range strings.FieldsSeq(c.keys) {
			key, kind, _ := strings.Cut(pair, ":")
			value, ok := c.object[key]
			if !ok || !strings.HasPrefix(reflect.TypeOf(value).String(), kind) {
				t.Errorf("%s: %s is %T, want %s", what, key, value, kind)
			}
		}
	}
	for _, missing := range []any{row("trainers", 0)["epsilon"], row("trainers", 0)["metrics"].(map[string]any)["rmse"], row("kernels", 1)["ratio"]} {
		if missing != nil {
			t.Errorf("a number that does not exist is %v, want null", missing)
		}
	}
}

func TestEmptyListsAreNotNull(t *testing.T) {
	r := New(time.Now(), nil)
	var b bytes.Buffer
	if err := WriteJSON(&b, &r); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"kernels", "trainers", "baselines", "memory", "warnings"} {
		if !strings.Contains(b.String(), `"`+key+`": []`) {
			t.Errorf("%s is not an empty list", key)
		}
	}
}

func TestJSONRoundTrip(t *testing.T) {
	var first, second bytes.Buffer
	if err := WriteJSON(&first, sample()); err != nil {
		t.Fatal(err)
	}
	var back Report
	if err := json.Unmarshal(first.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	if err := WriteJSON(&second, &back); err != nil {
		t.Fatal(err)
	}
	if first.String() != second.String() {
		t.Error("a report that was read back is written differently")
	}
}

// TestEveryKeyIsDocumented compares the types with the document.
func TestEveryKeyIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../docs/bench-json.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, m := range regexp.MustCompile("`([a-z0-9_@]+)(\\[\\])?`").FindAllStringSubmatch(string(text), -1) {
		documented[m[1]] = true
	}
	var check func(kind reflect.Type)
	check = func(kind reflect.Type) {
		for kind.Kind() == reflect.Pointer || kind.Kind() == reflect.Slice {
			kind = kind.Elem()
		}
		if kind.Kind() != reflect.Struct || kind == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range kind.NumField() {
			key, _, _ := strings.Cut(kind.Field(i).Tag.Get("json"), ",")
			if !documented[key] {
				t.Errorf("%s.%s: key %q is not in docs/bench-json.md", kind.Name(), kind.Field(i).Name, key)
			}
			check(kind.Field(i).Type)
		}
	}
	check(reflect.TypeFor[Report]())
}

// TestPageStandsAlone rejects everything that would make a browser ask the network, and text that was not escaped.
func TestPageStandsAlone(t *testing.T) {
	var b bytes.Buffer
	if err := WriteHTML(&b, sample()); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, bad := range []string{"http:", "https:", "src=", "<script", "@import", "url(", "NaN", "Inf"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page contains %q", bad)
		}
	}
	for _, want := range []string{"<svg", "GramF32", "dpals, r=64, ε=1", "0.3000 (0.2800–0.3100)", "ML-20M &amp; more", "µs (less is better", "&lt;script&gt;", "No privacy &amp; no promise.", "synthetic data", "</html>"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	captions := strings.Count(page, "<caption>")
	if marked := strings.Count(page, "(synthetic data)</caption>"); marked != captions {
		t.Errorf("%d of %d tables say that the data are synthetic", marked, captions)
	}
}

func TestPeak(t *testing.T) {
	plan := []Memory{
		{Phase: DataPhase, What: "ratings", Bytes: 10, Shared: true},
		{Phase: "kernels", What: "kernels", Bytes: 50},
		{Phase: "explicit", What: "als", Bytes: 20},
		{Phase: "explicit", What: "dpals", Bytes: 30},
		{Phase: "explicit", What: "split", Bytes: 25, Shared: true},
	}
	bytes, uses := Peak(plan)
	var names []string
	for _, u := range uses {
		names = append(names, u.What)
	}
	if want := "ratings dpals split"; bytes != 65 || strings.Join(names, " ") != want {
		t.Errorf("%d bytes for %v, want 65 for %s", bytes, names, want)
	}
	if bytes, _ := Peak(plan[:1]); bytes != 10 {
		t.Errorf("with data alone %d, want 10", bytes)
	}
}

func TestPutReplacesTheSameRun(t *testing.T) {
	nan := Number(math.NaN())
	var list []Trainer
	for k, row := range []Trainer{
		{Name: "als", Protocol: "explicit", Rank: 64, Target: nan},
		{Name: "als", Protocol: "implicit", Rank: 64, Target: nan},
		{Name: "dpals", Protocol: "explicit", Rank: 64, Target: 1},
		{Name: "dpals", Protocol: "explicit", Rank: 4, Target: 1},
		{Name: "dpals", Protocol: "explicit", Rank: 4, Target: 5},
		{Name: "dpals", Protocol: "explicit", Rank: 4, Target: nan},
	} {
		row.Repeats = 1
		if list = Put(list, row); len(list) != k+1 {
			t.Fatalf("row %d replaced another one: %+v", k, list)
		}
	}
	for k := range list {
		row := list[k]
		row.Repeats = 2
		if list = Put(list, row); len(list) != 6 || list[k].Repeats != 2 {
			t.Errorf("row %d was not replaced: %+v", k, list)
		}
	}
}

func TestQualityText(t *testing.T) {
	nan := Number(math.NaN())
	for _, c := range []struct {
		row  Trainer
		want string
	}{
		{Trainer{}, "–"},
		{Trainer{Repeats: 1, Metrics: map[string]Number{"rmse": .9}}, "0.9000"},
		{Trainer{Repeats: 2, Metrics: map[string]Number{"rmse": nan}}, "diverged"},
		{Trainer{Repeats: 2, Metrics: map[string]Number{"rmse": .9}, MetricsMin: map[string]Number{"rmse": .85}, MetricsMax: map[string]Number{"rmse": .95}}, "0.9000 (0.8500–0.9500)"},
	} {
		if got := c.row.Quality("rmse"); got != c.want {
			t.Errorf("%+v: %q, want %q", c.row, got, c.want)
		}
	}
}

func TestEpsilonText(t *testing.T) {
	nan := Number(math.NaN())
	for want, row := range map[string]Trainer{
		"1": {Epsilon: Number(1 - 1e-12), Repeats: 1}, "0.1235": {Epsilon: 0.12345678, Repeats: 1},
		"∞": {Epsilon: nan, Repeats: 1}, "–": {Epsilon: nan},
	} {
		if got := row.EpsilonText(); got != want {
			t.Errorf("%+v: %q, want %q", row, got, want)
		}
	}
}
