package trainer

import (
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
)

// A file size limit stands in for a full disk: write fails in the same place.
func TestSaveOnFullDisk(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "model")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	m := randomModel(t, shape{users: 5, items: 5000, rank: 16, userFactors: true}, 1)
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		t.Skip("the limit on file sizes cannot be read:", err)
	}
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 1 << 17, Max: old.Max}); err != nil {
		t.Skip("the limit on file sizes cannot be set:", err)
	}
	err := m.Save(path)
	if reset := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old); reset != nil {
		t.Fatal(reset)
	}
	if !errors.Is(err, syscall.EFBIG) {
		t.Errorf("error %v, want %v", err, syscall.EFBIG)
	}
	onlyOld(t, dir, "old")
	if err := m.Save(path); err != nil {
		t.Errorf("without the limit: %v", err)
	}
}
