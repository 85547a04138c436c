package machine

import (
	"strconv"
	"strings"
)

// parseMemAvailable finds the line "MemAvailable: N kB" of /proc/meminfo.
func parseMemAvailable(text string) (int64, bool) {
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(line, "MemAvailable:")
		if !ok {
			continue
		}
		kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
		return kib << 10, err == nil
	}
	return 0, false
}
