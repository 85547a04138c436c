package trainer

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dpmf-go/dpmf/dataset"
)

func encode(t testing.TB, m *Model, users bool) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := m.write(&b, users); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func bitsEqual(a, b []float32) bool {
	return (a == nil) == (b == nil) && slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

func idNames(d *dataset.IDs) []string {
	if d == nil {
		return nil
	}
	names := []string{}
	for i := range d.Len() {
		names = append(names, d.Name(i))
	}
	return names
}

// sameModel compares everything a file keeps; users says whether the user side was written.
func sameModel(t *testing.T, got, want *Model, users bool) {
	t.Helper()
	userFactors, userOffsets, userIDs := want.UserFactors, want.Offsets.User, idNames(want.UserIDs)
	if !users {
		userFactors, userOffsets, userIDs = nil, nil, nil
	}
	for _, c := range []struct {
		what string
		same bool
	}{
		{"algorithm", got.Algorithm == want.Algorithm},
		{"configuration", bytes.Equal(got.Config, want.Config)},
		{"rank", got.Rank == want.Rank},
		{"item factors", bitsEqual(got.ItemFactors, want.ItemFactors)},
		{"user factors", bitsEqual(got.UserFactors, userFactors)},
		{"global offset", math.Float32bits(got.Offsets.Global) == math.Float32bits(want.Offsets.Global)},
		{"item offsets", bitsEqual(got.Offsets.Item, want.Offsets.Item)},
		{"user offsets", bitsEqual(got.Offsets.User, userOffsets)},
		{"clamp", got.ClampMin == want.ClampMin && got.ClampMax == want.ClampMax},
		{"fold-in", got.FoldIn == want.FoldIn},
		{"item ids", slices.Equal(idNames(got.ItemIDs), idNames(want.ItemIDs))},
		{"user ids", slices.Equal(idNames(got.UserIDs), userIDs)},
		{"ledger", (got.Ledger == nil) == (want.Ledger == nil)},
		{"privacy text", got.Privacy() == want.Privacy()},
	} {
		if !c.same {
			t.Errorf("%s changed", c.what)
		}
	}
}

func TestSaveAndLoad(t *testing.T) {
	dir := t.TempDir()
	for bits := range 1 << 7 {
		s := shape{users: 5, items: 7, rank: 3, itemOffsets: bits&1 > 0, userOffsets: bits&2 > 0, userFactors: bits&4 > 0,
			textIDs: bits&8 > 0, private: bits&16 > 0, clamped: bits&32 > 0, background: bits&64 > 0}
		m := randomModel(t, s, uint64(bits))
		m.ItemFactors[0], m.ItemFactors[1] = float32(math.Copysign(0, -1)), math.SmallestNonzeroFloat32
		t.Run(fmt.Sprintf("%+v", s), func(t *testing.T) {
			path := filepath.Join(dir, "model")
			for _, v := range []struct {
				save  func(string) error
				users bool
			}{{m.Save, m.UserFactors != nil && m.Ledger == nil}, {m.SaveWithUsers, m.UserFactors != nil}} {
				if err := v.save(path); err != nil {
					t.Fatal(err)
				}
				got, err := Load(path)
				if err != nil {
					t.Fatal(err)
				}
				sameModel(t, got, m, v.users)
				if again := encode(t, got, true); !bytes.Equal(again, encode(t, m, v.users)) {
					t.Error("saving the loaded model gives another file")
				}
			}
		})
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Errorf("files left behind: %v (error %v)", left, err)
	}
}

// A private file has no user side, and serves users through NewUser alone.
func TestPrivateFileKnowsNoUsers(t *testing.T) {
	m := randomModel(t, shape{users: 5, items: 20, rank: 3, userFactors: true, userOffsets: true, private: true, textIDs: true}, 1)
	path := filepath.Join(t.TempDir(), "private.safetensors")
	if err := m.Save(path); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"user_factors", "user_offsets", "user_ids", "user é"} {
		if bytes.Contains(b, []byte(name)) {
			t.Errorf("the file of a private model contains %q", name)
		}
	}
	got, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if got.NumUsers() != 0 || got.NumItems() != 20 {
		t.Errorf("%d users, %d items", got.NumUsers(), got.NumItems())
	}
	items, values := []int32{4, 17, 2}, []float32{1, -2, 0.5}
	want, err := m.NewUser(items, values)
	if err != nil {
		t.Fatal(err)
	}
	user, err := got.NewUser(items, values)
	if err != nil {
		t.Fatal(err)
	}
	if !bitsEqual(user.Vector, want.Vector) || user.Mean != want.Mean || !slices.Equal(got.RecommendNew(user, 9), m.RecommendNew(want, 9)) {
		t.Error("the loaded model makes another user of the same ratings")
	}
}

func TestPermissions(t *testing.T) {
	for _, private := range []bool{false, true} {
		m := randomModel(t, shape{users: 2, items: 2, rank: 1, userFactors: true, private: private}, 1)
		path := filepath.Join(t.TempDir(), "m")
		if err := m.SaveWithUsers(path); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if open := info.Mode().Perm()&0o077 != 0; private && open {
			t.Errorf("the user side of a private model is readable by others: %v", info.Mode())
		}
	}
}

// reheader rewrites a file's JSON header.
func reheader(t testing.TB, file []byte, change func(header map[string]json.RawMessage)) []byte {
	t.Helper()
	n := binary.LittleEndian.Uint64(file)
	var header map[string]json.RawMessage
	if err := json.Unmarshal(file[8:8+n], &header); err != nil {
		t.Fatal(err)
	}
	change(header)
	head, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	return append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(head))), head...), file[8+n:]...)
}

// remeta rewrites the metadata within the header.
func remeta(t testing.TB, file []byte, change func(meta map[string]any)) []byte {
	t.Helper()
	return reheader(t, file, func(header map[string]json.RawMessage) {
		var outer map[string]string
		if err := json.Unmarshal(header["__metadata__"], &outer); err != nil {
			t.Fatal(err)
		}
		var meta map[string]any
		if err := json.Unmarshal([]byte(outer["dpmf"]), &meta); err != nil {
			t.Fatal(err)
		}
		change(meta)
		b, err := json.Marshal(meta)
		if err != nil {
			t.Fatal(err)
		}
		outer["dpmf"] = string(b)
		if header["__metadata__"], err = json.Marshal(outer); err != nil {
			t.Fatal(err)
		}
	})
}

// tensor replaces the description of one tensor.
func tensor(name, description string) func(map[string]json.RawMessage) {
	return func(header map[string]json.RawMessage) {
		if description == "" {
			delete(header, name)
		} else {
			header[name] = json.RawMessage(description)
		}
	}
}

func TestLoadRefuses(t *testing.T) {
	public := encode(t, randomModel(t, shape{users: 5, items: 7, rank: 3, userFactors: true, itemOffsets: true, userOffsets: true}, 1), true)
	private := encode(t, randomModel(t, shape{users: 5, items: 7, rank: 3, userFactors: true, private: true}, 2), true)
	if _, err := decode(public); err != nil {
		t.Fatal(err)
	}
	if _, err := decode(private); err != nil {
		t.Fatal(err)
	}
	set := func(key string, value any) func(map[string]any) {
		return func(meta map[string]any) { meta[key] = value }
	}
	withNaN := slices.Clone(public)
	n := binary.LittleEndian.Uint64(public)
	binary.LittleEndian.PutUint32(withNaN[8+n+4:], math.Float32bits(float32(math.NaN())))
	withInf := slices.Clone(public)
	binary.LittleEndian.PutUint32(withInf[8+n:], math.Float32bits(float32(math.Inf(1))))
	for _, c := range []struct {
		file  []byte
		names string
	}{
		{nil, "too short"},
		{[]byte("1,2,5\n3,4,1\n"), "not a model file"},
		{binary.LittleEndian.AppendUint64(nil, math.MaxUint64), "header"},
		{append(binary.LittleEndian.AppendUint64(nil, 2), "{}"...), "no dpmf metadata"},
		{append(binary.LittleEndian.AppendUint64(nil, 4), "null"...), "no dpmf metadata"},
		{append(binary.LittleEndian.AppendUint64(nil, 2), "[]"...), "not a model file"},
		{withNaN, "NaN"},
		{withInf, "Inf"},
		{remeta(t, public, set("version", 2)), "version 2"},
		{remeta(t, public, set("version", nil)), "version 0"},
		{remeta(t, public, set("private", true)), "ledger"},
		{remeta(t, public, set("algorithm", "dpals")), "ledger"},
		{remeta(t, private, func(meta map[string]any) { delete(meta, "ledger") }), "ledger"},
		{remeta(t, private, set("ledger", nil)), "ledger"},
		{remeta(t, private, set("ledger", map[string]any{})), "ledger"},
		{remeta(t, private, func(meta map[string]any) { delete(meta, "ledger"); delete(meta, "private") }), "ledger"},
		{remeta(t, public, set("fold_in", map[string]any{})), "loss"},
		{remeta(t, public, set("fold_in", map[string]any{"loss": map[string]any{"kind": "explicit"}})), "lambda"},
		{remeta(t, public, set("fold_in", map[string]any{"loss": map[string]any{"kind": "explicit"}, "ridge": map[string]any{"lambda": 1}, "shrinkage": -1})), "shrinkage"},
		{remeta(t, public, set("clamp", "wide")), "metadata"},
		{reheader(t, public, tensor("item_factors", "")), "item_factors is missing"},
		{reheader(t, public, tensor("item_ids", "")), "item_ids is missing"},
		{reheader(t, public, tensor("user_ids", "")), "user_ids is missing"},
		{reheader(t, public, tensor("item_factors", `7`)), "item_factors"},
		{reheader(t, public, tensor("item_factors", `{"dtype":"F64","shape":[7,3],"data_offsets":[0,84]}`)), "item_factors"},
		{reheader(t, public, tensor("item_factors", `{"dtype":"F32","shape":[21],"data_offsets":[0,84]}`)), "item_factors"},
		{reheader(t, public, tensor("item_factors", `{"dtype":"F32","shape":[7,4],"data_offsets":[0,84]}`)), "shape [7 4]"},
		{reheader(t, public, tensor("item_factors", `{"dtype":"F32","shape":[-7,-3],"data_offsets":[0,84]}`)), "shape"},
		{reheader(t, public, tensor("item_factors", `{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}`)), "shape"},
		{reheader(t, public, tensor("item_factors", `{"dtype":"F32","shape":[4611686018427387904,0],"data_offsets":[0,0]}`)), "0"},
		{reheader(t, public, tensor("item_factors", `{"dtype":"F32","shape":[0,3],"data_offsets":[0,0]}`)), "0×3"},
		{reheader(t, public, tensor("item_factors", `{"dtype":"F32","shape":[7,3],"data_offsets":[-84,0]}`)), "item_factors"},
		{reheader(t, public, tensor("item_factors", `{"dtype":"F32","shape":[7,3],"data_offsets":[84,0]}`)), "item_factors"},
		{reheader(t, public, tensor("item_factors", `{"dtype":"F32","shape":[7,3],"data_offsets":[100000,100084]}`)), "cut short"},
		{reheader(t, public, tensor("item_factors", `{"dtype":"F32","shape":[6,3],"data_offsets":[0,72]}`)), "item_offsets has 7 elements, want 6"},
		{reheader(t, public, tensor("user_factors", `{"dtype":"F32","shape":[7,2],"data_offsets":[0,56]}`)), "rank 2"},
		{reheader(t, public, tensor("user_factors", `{"dtype":"F32","shape":[7,3],"data_offsets":[0,84]}`)), "user_offsets has 5 elements, want 7"},
		{reheader(t, public, tensor("user_ids", `{"dtype":"U8","shape":[9],"data_offsets":[0,9]}`)), "user_ids"},
	} {
		m, err := decode(c.file)
		if m != nil || err == nil {
			t.Errorf("a file that should fail for %q was loaded", c.names)
		} else if !strings.Contains(err.Error(), c.names) {
			t.Errorf("error %q does not say %q", err, c.names)
		}
	}
}

func TestLoadRefusesEveryTruncation(t *testing.T) {
	for _, private := range []bool{false, true} {
		m := randomModel(t, shape{users: 5, items: 7, rank: 3, userFactors: true, itemOffsets: true, userOffsets: true, textIDs: true, private: private}, 1)
		file := encode(t, m, true)
		for n := range file {
			if _, err := decode(file[:n]); err == nil {
				t.Fatalf("the first %d of %d bytes were loaded", n, len(file))
			}
		}
	}
}

// TestLoadRefusesRanksBeyondTrainers: the workspaces of such a rank would take terabytes, of which running out cannot be
// recovered from.
func TestLoadRefusesRanksBeyondTrainers(t *testing.T) {
	for rank, want := range map[int]string{MaxRank: "", MaxRank + 1: "rank is 16385"} {
		m := &Model{
			Algorithm: "als", Config: json.RawMessage("{}"), Rank: rank, ItemFactors: make([]float32, rank), ItemIDs: dataset.IdentityIDs(1),
			FoldIn: FoldIn{Loss: Loss{Kind: Explicit}, Ridge: Ridge{Lambda: 1}},
		}
		_, err := decode(encode(t, m, false))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("rank %d: %v, want %q", rank, err, want)
		}
	}
}

func TestSaveWithoutIDs(t *testing.T) {
	m := &Model{Algorithm: "als", Config: json.RawMessage("{}"), Rank: 1, ItemFactors: []float32{1}}
	dir := t.TempDir()
	if err := m.Save(filepath.Join(dir, "m")); err == nil || !strings.Contains(err.Error(), "item_ids") {
		t.Errorf("a model without ids: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestLoadErrorsNameTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "missing.safetensors")
	if _, err := Load(path); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), path) {
		t.Errorf("missing file: %v", err)
	}
	if err := os.WriteFile(path, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("damaged file: %v", err)
	}
}

// onlyOld checks that a folder holds nothing but the file that was there before.
func onlyOld(t *testing.T, dir, content string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 {
		t.Errorf("a failed save left %v behind", entries)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "model")); err != nil || string(b) != content {
		t.Errorf("a failed save changed the old file to %d bytes (error %v)", len(b), err)
	}
}

func TestFailedSaveLeavesNothing(t *testing.T) {
	m := randomModel(t, shape{users: 5, items: 7, rank: 3, userFactors: true}, 1)
	dir := t.TempDir()
	path := filepath.Join(dir, "model")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	check := func(what string, err error) {
		t.Helper()
		if err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v", what, err)
		}
		onlyOld(t, dir, "old")
	}
	full := errors.New("no space left on device")
	for _, after := range []int{0, 1, 1 << 21} {
		err := writeAtomically(path, 0o600, func(w io.Writer) error {
			if _, err := w.Write(make([]byte, after)); err != nil {
				return err
			}
			return full
		})
		if !errors.Is(err, full) {
			t.Errorf("error %v", err)
		}
		check("full disk", err)
	}
	check("no such folder", m.Save(filepath.Join(path+".d", "model")))
	check("folder is a file", m.Save(filepath.Join(path, "model")))
	if err := os.Mkdir(filepath.Join(dir, "model.d"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := m.Save(filepath.Join(dir, "model.d")); err == nil {
		t.Error("a folder was replaced by a file")
	}
	if err := os.Remove(filepath.Join(dir, "model.d")); err != nil {
		t.Fatal(err)
	}
	onlyOld(t, dir, "old")

	broken := randomModel(t, shape{users: 5, items: 7, rank: 3, userFactors: true}, 1)
	broken.FoldIn.ClipBound = math.Inf(1) // JSON cannot hold it
	check("metadata that cannot be encoded", broken.Save(path))

	if os.Getuid() == 0 {
		t.Log("permissions do not bind this user: the read-only folder is not tested")
		return
	}
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(dir, 0o700)
	check("read-only folder", m.Save(path))
}

// FuzzLoad: no file makes Load panic, and no model that it accepts panics in use.
func FuzzLoad(f *testing.F) {
	for bits := range 16 {
		m := randomModel(f, shape{users: 3, items: 4, rank: 2, userFactors: bits&1 > 0, itemOffsets: bits&2 > 0,
			userOffsets: true, textIDs: bits&4 > 0, private: bits&8 > 0, background: bits&8 > 0}, uint64(bits))
		file := encode(f, m, true)
		f.Add(file)
		f.Add(file[:len(file)*(bits+1)/17])
		f.Add(remeta(f, file, func(meta map[string]any) {
			meta["fold_in"] = map[string]any{"loss": map[string]any{"kind": "confidence", "alpha": 1e300}, "ridge": map[string]any{"lambda": 1e-300, "exponent": -4}}
		}))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		m, err := decode(file)
		if err != nil {
			if m != nil {
				t.Fatal("both a model and an error")
			}
			return
		}
		if (m.Ledger == nil) && privateAlgorithms[m.Algorithm] {
			t.Fatal("a private model without a ledger was loaded")
		}
		use(t, m)
	})
}

func use(t *testing.T, m *Model) {
	for _, u := range []int{-1, 0, m.NumUsers() - 1, m.NumUsers()} {
		for _, i := range []int{-1, 0, m.NumItems() - 1, m.NumItems()} {
			m.Predict(u, i)
		}
		m.Recommend(u, 3)
	}
	if _, err := m.SimilarItems(0, 3); err != nil {
		t.Fatal(err)
	}
	for n := range min(3, m.NumItems()) {
		items, values := []int32{0, 1, 2}[:n], []float32{1, -1e30, math.MaxFloat32}[:n]
		if u, err := m.NewUser(items, values); err == nil {
			m.RecommendNew(u, 3)
			m.PredictNew(u, 0)
		}
	}
	_ = m.Privacy()
	if err := m.write(io.Discard, true); err != nil {
		t.Fatalf("a loaded model cannot be saved: %v", err)
	}
}
