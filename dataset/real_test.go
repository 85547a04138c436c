package dataset

import (
	"context"
	"os"
	"path/filepath"
	"testing"
)

// dataDir is the folder with the real data sets; tests that need it are skipped without.
func dataDir(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("DPMF_DATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "shared", "data")
	}
	if _, err := os.Stat(filepath.Join(dir, "ml-1m", "ratings.dat")); err != nil {
		t.Skip("the MovieLens files are not here; set DPMF_DATA to the folder that holds ml-100k, ml-1m and ml-latest-small")
	}
	return dir
}

func TestRealFiles(t *testing.T) {
	dir := dataDir(t)
	for _, c := range []struct {
		path                  string
		users, items, ratings int
		scale                 Scale
		sha                   string
	}{
		{"ml-100k/u.data", 943, 1682, 100000, Scale{1, 5, 1}, "06416e597f82b7342361e41163890c81036900f418ad91315590814211dca490"},
		{"ml-1m/ratings.dat", 6040, 3706, 1000209, Scale{1, 5, 1}, "929d94d0e3a4a82c8e5a95c08d47f1f6743fa8a915b0eec1bc5c48f63856332e"},
		{"ml-latest-small/ratings.csv", 610, 9724, 100836, Scale{0.5, 5, 0.5}, "aa289ca83157595d0df6aea1be6a4ded676ddc4385472e8313a8ed9805352646"},
	} {
		t.Run(filepath.Dir(c.path), func(t *testing.T) {
			r, err := OpenFile(context.Background(), filepath.Join(dir, c.path), Options{NoCache: true})
			if err != nil {
				t.Fatal(err)
			}
			if r.NumUsers() != c.users || r.NumItems() != c.items || r.NumRatings() != c.ratings {
				t.Errorf("%d users, %d items, %d ratings; want %d, %d, %d", r.NumUsers(), r.NumItems(), r.NumRatings(), c.users, c.items, c.ratings)
			}
			if r.scale != c.scale {
				t.Errorf("scale %v, want %v", r.scale, c.scale)
			}
			if i := r.Info(); i.SHA256 != c.sha || i.Duplicates != 0 || i.SkippedLines != 0 || i.Synthetic {
				t.Errorf("info %+v", i)
			}
			entries(t, r)
		})
	}
}
