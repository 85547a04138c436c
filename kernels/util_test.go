package kernels

import (
	"strconv"
	"strings"
	"testing"
)

// sizeName names a sub-benchmark: n=64.
func sizeName(letter string, n int) string { return letter + "=" + strconv.Itoa(n) }

// mustPanic fails unless call panics with a message of this package that
// contains want, up to a comma that tells cases apart.
func mustPanic(t *testing.T, want string, call func()) {
	t.Helper()
	want = strings.TrimSuffix(want, ",")
	defer func() {
		t.Helper()
		message, ok := recover().(string)
		if !ok || !strings.HasPrefix(message, "kernels: ") || !strings.Contains(message, want) {
			t.Errorf("panic %q, want one of package kernels about %q", message, want)
		}
	}()
	call()
}
