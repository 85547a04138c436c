package kerneltest

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/dpmf-go/dpmf/internal/cpu"
)

// recorder stands in for a test and notes whether it failed.
type recorder struct {
	testing.TB
	failed bool
}

func (r *recorder) Helper()               {}
func (r *recorder) Fatalf(string, ...any) { r.failed = true; runtime.Goexit() }

func TestSameBits(t *testing.T) {
	nan, zero := float32(math.NaN()), float32(0)
	for _, c := range []struct {
		got, want []float32
		same      bool
	}{
		{[]float32{1, nan}, []float32{1, -nan}, true},
		{[]float32{zero}, []float32{0}, true},
		{[]float32{zero}, []float32{float32(math.Copysign(0, -1))}, false},
		{[]float32{1}, []float32{math.Nextafter32(1, 2)}, false},
		{[]float32{nan}, []float32{1}, false},
		{[]float32{1}, []float32{1, 2}, false},
	} {
		r := &recorder{TB: t}
		done := make(chan struct{})
		go func() { // Fatalf ends its goroutine
			defer close(done)
			SameBits(r, "x", c.got, c.want)
		}()
		<-done
		if r.failed == c.same {
			t.Errorf("SameBits(%v, %v) failed: %v", c.got, c.want, r.failed)
		}
	}
}

// TestEachTierRunsEveryTierOnce also checks that the tier at the start is restored.
func TestEachTierRunsEveryTierOnce(t *testing.T) {
	top := cpu.Active()
	var want, each, loop []string
	for _, tier := range cpu.Tiers {
		if tier <= top {
			want = append(want, tier.String())
		}
	}
	EachTier(t, func(*testing.T) { each = append(each, cpu.Active().String()) })
	ForTiers(func(tier string) {
		if tier != cpu.Active().String() {
			t.Errorf("told %s, active is %s", tier, cpu.Active())
		}
		loop = append(loop, tier)
	})
	if !slices.Equal(each, want) || !slices.Equal(loop, want) || cpu.Active() != top {
		t.Errorf("EachTier ran %v, ForTiers %v, want %v; active afterwards %v, before %v", each, loop, want, cpu.Active(), top)
	}
}

// TestGuardPagesFault runs this binary again for each access outside a guarded buffer: the
// child must die of it.
func TestGuardPagesFault(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("guard pages exist on Linux only")
	}
	const variable = "KERNELTEST_TOUCH"
	places := map[string]func(testing.TB, int) []float32{"end": AtEnd, "start": AtStart}
	if place := places[os.Getenv(variable)]; place != nil {
		x := place(t, 5)
		for i := range x {
			x[i]++
		}
		fmt.Println("inside is fine")
		touchOutside(x, os.Getenv(variable) == "end")
		fmt.Println("outside as well")
		return
	}
	for place := range places {
		c := exec.Command(os.Args[0], "-test.run=^TestGuardPagesFault$")
		c.Env = append(os.Environ(), variable+"="+place)
		out, err := c.CombinedOutput()
		if err == nil || !slices.Contains(splitLines(out), "inside is fine") || slices.Contains(splitLines(out), "outside as well") {
			t.Errorf("touching past the %s: %v\n%s", place, err, out)
		}
	}
}

// touchOutside reads the element after the last, or before the first.
func touchOutside(x []float32, after bool) {
	at := uintptr(unsafe.Pointer(&x[0])) - 4
	if after {
		at += 4 * uintptr(len(x)+1)
	}
	sink = *(*float32)(*(*unsafe.Pointer)(unsafe.Pointer(&at)))
}

// sink keeps the read.
var sink float32

func splitLines(b []byte) []string { return strings.Split(string(b), "\n") }
