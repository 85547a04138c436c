package dataset

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// set is what is known about a data set with a name.
type set struct {
	key     string
	title   string   // as its publisher writes it
	folders []string // names under which it is unpacked
	file    string   // the ratings in such a folder
	archive archive
}

// archive is a download. Without any digest there is none.
type archive struct {
	name        string // file name under the base address
	size        int64  // 0 if not known
	sha256, md5 string // SHA-256 is checked if known, else MD5
	refreshed   bool   // GroupLens replaces it now and then
}

// groupLens is where the archives are published.
const groupLens = "https://files.grouplens.org/datasets/movielens/"

var sets = map[string]set{
	"ml100k": {title: "MovieLens 100K", folders: []string{"ml-100k"}, file: "u.data", archive: archive{
		name: "ml-100k.zip", size: 4_924_029, sha256: "50d2a982c66986937beb9ffb3aa76efe955bf3d5c6b761f4e3a7cd717c6a3229"}},
	"ml1m": {title: "MovieLens 1M", folders: []string{"ml-1m"}, file: "ratings.dat", archive: archive{
		name: "ml-1m.zip", size: 5_917_549, sha256: "a6898adb50b9ca05aa231689da44c217cb524e7ebd39d264c56e2832f2c54e20"}},
	"ml10m": {title: "MovieLens 10M", folders: []string{"ml-10m", "ml-10M100K"}, file: "ratings.dat", archive: archive{
		name: "ml-10m.zip", md5: "ce571fd55effeba0271552578f2648bd"}},
	"ml20m": {title: "MovieLens 20M", folders: []string{"ml-20m"}, file: "ratings.csv", archive: archive{
		name: "ml-20m.zip", size: 198_702_078, sha256: "96f243c338a8665f6bcc89c53edf6ee39162a846940de6b7c8c48aeada765ff3"}},
	"ml25m": {title: "MovieLens 25M", folders: []string{"ml-25m"}, file: "ratings.csv", archive: archive{
		name: "ml-25m.zip", size: 261_978_986, sha256: "8b21cfb7eb1706b4ec0aac894368d90acf26ebdfb6aced3ebd4ad5bd1eb9c6aa"}},
	"ml32m": {title: "MovieLens 32M", folders: []string{"ml-32m"}, file: "ratings.csv", archive: archive{
		name: "ml-32m.zip", sha256: "e4a68655d7386b8f95f2f2424b2ff975dfdd15ffd59e0d864a14dca43e99d6ee"}},
	"mllatestsmall": {title: "MovieLens latest-small", folders: []string{"ml-latest-small"}, file: "ratings.csv", archive: archive{
		name: "ml-latest-small.zip", size: 978_202, sha256: "696d65a3dfceac7c45750ad32df2c259311949efec81f0f144fdfb91ebc9e436", refreshed: true}},
	"eachmovie": {title: "EachMovie", folders: []string{"eachmovie"}, file: "ratings.csv"}, // withdrawn by its publisher
}

// Names lists the data sets that Open knows by name.
func Names() []string {
	names := slices.Collect(maps.Keys(sets))
	for k := range names {
		names[k] = setName(names[k])
	}
	slices.Sort(names)
	return names
}

// setKey is the form in which names of data sets are compared: lower case, without hyphens and underscores.
func setKey(name string) string {
	return strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(name))
}

// setName is the name by which a set is shown, given its key.
func setName(key string) string {
	if key == "mllatestsmall" {
		return "mllatest-small"
	}
	return key
}

func lookupSet(name string) (set, bool) {
	key := setKey(name)
	s, ok := sets[key]
	s.key = key
	return s, ok
}

// find looks for the set in a folder of data sets: unpacked, packed file by file, or as its archive. If direct, dir
// may also be the folder of the set itself.
func (s set) find(dir string, direct bool) (path string, ok bool) {
	var candidates []string
	add := func(parts ...string) {
		p := filepath.Join(parts...)
		candidates = append(candidates, p, p+".gz", p+".zst", p+".zip")
	}
	for _, folder := range s.folders {
		add(dir, folder, s.file)
		candidates = append(candidates, filepath.Join(dir, folder+".zip"))
	}
	if direct {
		add(dir, s.file)
	}
	for _, c := range candidates {
		if st, err := os.Stat(c); err == nil && !st.IsDir() {
			return c, true
		}
	}
	return "", false
}
