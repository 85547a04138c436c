package cpu

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestParseRoundTrip(t *testing.T) {
	for _, tier := range Tiers {
		got, err := Parse(tier.String())
		if err != nil || got != tier {
			t.Errorf("Parse(%q) = %v, %v", tier.String(), got, err)
		}
	}
}

func TestSelectRejectsUnknownAndHigher(t *testing.T) {
	before := Active()
	defer set(before)
	for _, word := range []string{"avx1024", "", "AVX2", "sse"} {
		err := Select(word)
		if err == nil || !strings.Contains(err.Error(), "generic, avx2 or avx512") {
			t.Errorf("Select(%q) = %v, want an error that lists the words", word, err)
		}
		if Active() != before {
			t.Fatalf("Select(%q) changed the tier", word)
		}
	}
	for _, tier := range Tiers {
		err := Select(tier.String())
		if (tier > Detected()) != (err != nil) {
			t.Errorf("Select(%q) on a %s machine: %v", tier, Detected(), err)
		}
	}
}

func TestSelectSetsExactlyTheTier(t *testing.T) {
	before := Active()
	defer set(before)
	for _, tier := range Tiers {
		if tier > Detected() {
			continue
		}
		if err := Select(tier.String()); err != nil {
			t.Fatal(err)
		}
		if Active() != tier || HasAVX2 != (tier >= TierAVX2) || HasAVX512 != (tier >= TierAVX512) {
			t.Errorf("after Select(%q): active %v, avx2 %v, avx512 %v", tier, Active(), HasAVX2, HasAVX512)
		}
	}
}

// TestEnvironment runs this test binary again under different values of
// DPMF_ISA, because init has read the variable long before a test starts.
func TestEnvironment(t *testing.T) {
	if os.Getenv("CPU_TEST_CHILD") == "1" {
		os.Stdout.WriteString("tier=" + Active().String() + " warning=" + Warning() + "\n")
		return
	}
	for _, c := range []struct{ word, tier, warning string }{
		{"generic", "generic", ""},
		{"avx1024", Detected().String(), "avx1024"},
		{"", Detected().String(), ""},
	} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestEnvironment$")
		cmd.Env = append(os.Environ(), "CPU_TEST_CHILD=1", Variable+"="+c.word)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", c.word, err, out)
		}
		line, _, _ := strings.Cut(string(out), "\n")
		if !strings.HasPrefix(line, "tier="+c.tier+" ") || strings.Contains(line, "warning="+Variable) != (c.warning != "") || !strings.Contains(line, c.warning) {
			t.Errorf("%s=%q printed %q, want tier %s and a warning about %q", Variable, c.word, line, c.tier, c.warning)
		}
	}
}
