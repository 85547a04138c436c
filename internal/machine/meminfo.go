package machine

import (
	"strconv"
	"strings"
)

// parseKiB finds the line "NAME: N kB" of a file under /proc.
func parseKiB(text, name string) (int64, bool) {
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(line, name+":")
		if !ok {
			continue
		}
		kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
		return kib << 10, err == nil
	}
	return 0, false
}
