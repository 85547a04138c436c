package trainer

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"unsafe"

	"github.com/dpmf-go/dpmf/dataset"
	"github.com/dpmf-go/dpmf/privacy"
)

// A model file is in the safetensors format: a JSON header with the tensors
// item_factors, user_factors, item_offsets, user_offsets (float32), item_ids and
// user_ids (bytes of dataset.IDs.MarshalBinary), and in __metadata__ one string,
// "dpmf", with everything else as JSON.

// fileVersion is the version of the metadata.
const fileVersion = 1

// fileMeta is the JSON in the metadata.
type fileMeta struct {
	Version   int             `json:"version"`
	Algorithm string          `json:"algorithm"`
	Config    json.RawMessage `json:"config"`
	Global    float32         `json:"global_offset"`
	Clamp     [2]float32      `json:"clamp"`
	FoldIn    FoldIn          `json:"fold_in"`
	Private   bool            `json:"private"` // the algorithm promises privacy, so a ledger must be there
	Ledger    *privacy.Ledger `json:"ledger,omitempty"`
}

type tensorInfo struct {
	Dtype   string   `json:"dtype"`
	Shape   []int    `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"`
}

// privateAlgorithms must never be loaded without a ledger.
var privateAlgorithms = map[string]bool{"dpals": true}

// Save writes the model to a file: hyper-parameters, id maps, factors and, for
// a private model, its ledger. The file appears under its name only when it is complete.
//
// For a private model the file leaves out everything that belongs to single
// users (their factors and means): the guarantee is joint differential privacy,
// which covers the item side and lets each user see only her own part. NewUser
// recomputes that part from her ratings. SaveWithUsers writes it all.
func (m *Model) Save(path string) error { return m.save(path, m.Ledger == nil) }

// SaveWithUsers is Save with the user side included for a private model. Whoever
// can read that file can learn about single users; no ε covers it. The file of a private
// model is therefore readable by its owner only.
func (m *Model) SaveWithUsers(path string) error { return m.save(path, true) }

func (m *Model) save(path string, users bool) error {
	mode := os.FileMode(0o666)
	if users && m.Ledger != nil {
		mode = 0o600
	}
	if err := writeAtomically(path, mode, func(w io.Writer) error { return m.write(w, users) }); err != nil {
		return fmt.Errorf("save model to %s: %w", path, err)
	}
	return nil
}

func (m *Model) write(w io.Writer, users bool) error {
	meta, err := json.Marshal(fileMeta{
		Version: fileVersion, Algorithm: m.Algorithm, Config: m.Config, Global: m.Offsets.Global,
		Clamp: [2]float32{m.ClampMin, m.ClampMax}, FoldIn: m.FoldIn, Private: m.Ledger != nil, Ledger: m.Ledger,
	})
	if err != nil {
		return err
	}
	var end int64
	header := map[string]any{"__metadata__": map[string]string{"format": "dpmf", "dpmf": string(meta)}}
	var data [][]byte
	tensor := func(name, dtype string, shape []int, bytes []byte) {
		header[name] = tensorInfo{dtype, shape, [2]int64{end, end + int64(len(bytes))}}
		end += int64(len(bytes))
		data = append(data, bytes)
	}
	ids := func(name string, d *dataset.IDs) error {
		if d == nil {
			return fmt.Errorf("the model has no %s", name)
		}
		b, err := d.MarshalBinary()
		if err == nil {
			tensor(name, "U8", []int{len(b)}, b)
		}
		return err
	}
	// float32 tensors first: every one then starts at a multiple of four.
	tensor("item_factors", "F32", []int{m.NumItems(), m.Rank}, littleEndian(m.ItemFactors))
	if m.Offsets.Item != nil {
		tensor("item_offsets", "F32", []int{len(m.Offsets.Item)}, littleEndian(m.Offsets.Item))
	}
	if users && m.UserFactors != nil {
		tensor("user_factors", "F32", []int{m.NumUsers(), m.Rank}, littleEndian(m.UserFactors))
		if m.Offsets.User != nil {
			tensor("user_offsets", "F32", []int{len(m.Offsets.User)}, littleEndian(m.Offsets.User))
		}
		if err := ids("user_ids", m.UserIDs); err != nil {
			return err
		}
	}
	if err := ids("item_ids", m.ItemIDs); err != nil {
		return err
	}
	head, err := json.Marshal(header)
	if err != nil {
		return err
	}
	for len(head)%8 != 0 {
		head = append(head, ' ')
	}
	if err := binary.Write(w, binary.LittleEndian, uint64(len(head))); err != nil {
		return err
	}
	for _, b := range append([][]byte{head}, data...) {
		if _, err := w.Write(b); err != nil {
			return err
		}
	}
	return nil
}

// Load reads a model file. It refuses a file that is damaged, of another version, or of a
// private algorithm without its ledger.
func Load(path string) (*Model, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("load model: %w", err)
	}
	m, err := decode(b)
	if err != nil {
		return nil, fmt.Errorf("load model from %s: %w", path, err)
	}
	return m, nil
}

func decode(b []byte) (*Model, error) {
	if len(b) < 8 {
		return nil, errors.New("the file is too short for a model")
	}
	n := binary.LittleEndian.Uint64(b)
	if n > uint64(len(b)-8) {
		return nil, errors.New("not a model file, or cut short within its header")
	}
	var header map[string]json.RawMessage
	if err := json.Unmarshal(b[8:8+n], &header); err != nil {
		return nil, fmt.Errorf("not a model file: %w", err)
	}
	var strings map[string]string
	if err := json.Unmarshal(header["__metadata__"], &strings); err != nil || strings["dpmf"] == "" {
		return nil, errors.New("a safetensors file, but not one of this program: it has no dpmf metadata")
	}
	var meta fileMeta
	if err := json.Unmarshal([]byte(strings["dpmf"]), &meta); err != nil {
		return nil, fmt.Errorf("metadata: %w", err)
	}
	if meta.Version != fileVersion {
		return nil, fmt.Errorf("the file has version %d, this program reads %d", meta.Version, fileVersion)
	}
	if meta.Ledger == nil && (meta.Private || privateAlgorithms[meta.Algorithm]) {
		return nil, fmt.Errorf("a model of the private algorithm %q without its privacy ledger: its guarantee is unknown", meta.Algorithm)
	}
	if err := meta.FoldIn.validate(); err != nil {
		return nil, fmt.Errorf("metadata: %w", err)
	}
	t := tensors{header: header, data: b[8+n:]}
	m := &Model{
		Algorithm: meta.Algorithm, Config: meta.Config, ClampMin: meta.Clamp[0], ClampMax: meta.Clamp[1],
		FoldIn: meta.FoldIn, Ledger: meta.Ledger, Offsets: Offsets{Global: meta.Global},
	}
	items, rank := t.matrix("item_factors", &m.ItemFactors)
	if t.err == nil && (items < 1 || rank < 1) {
		return nil, fmt.Errorf("tensor item_factors has the shape %d×%d", items, rank)
	}
	if rank > MaxRank {
		return nil, fmt.Errorf("the rank is %d, above the %d that trainers make", rank, MaxRank)
	}
	m.Rank = rank
	t.vector("item_offsets", items, &m.Offsets.Item)
	m.ItemIDs = t.ids("item_ids", items)
	if _, ok := header["user_factors"]; ok {
		users, r := t.matrix("user_factors", &m.UserFactors)
		if t.err == nil && r != rank {
			return nil, fmt.Errorf("user factors have rank %d, item factors %d", r, rank)
		}
		t.vector("user_offsets", users, &m.Offsets.User)
		m.UserIDs = t.ids("user_ids", users)
	}
	if t.err != nil {
		return nil, t.err
	}
	return m, nil
}

func (f *FoldIn) validate() error {
	if err := f.Loss.Validate(); err != nil {
		return err
	}
	if err := f.Ridge.Validate(); err != nil {
		return err
	}
	if !(f.Shrinkage >= 0) || !(f.ClipBound >= 0) {
		return fmt.Errorf("shrinkage %v or clip bound %v is negative", f.Shrinkage, f.ClipBound)
	}
	return nil
}

// tensors reads tensors and keeps the first error.
type tensors struct {
	header map[string]json.RawMessage
	data   []byte
	err    error
}

func (t *tensors) fail(format string, args ...any) {
	if t.err == nil {
		t.err = fmt.Errorf(format, args...)
	}
}

// bytes returns the data of a tensor, or nil.
func (t *tensors) bytes(name, dtype string, dimensions int) ([]byte, []int) {
	var info tensorInfo
	if err := json.Unmarshal(t.header[name], &info); err != nil {
		t.fail("tensor %s is missing or malformed", name)
		return nil, nil
	}
	from, to := info.Offsets[0], info.Offsets[1]
	if info.Dtype != dtype || len(info.Shape) != dimensions || from < 0 || to < from || to > int64(len(t.data)) {
		t.fail("tensor %s is malformed, or the file is cut short", name)
		return nil, nil
	}
	return t.data[from:to], info.Shape
}

func (t *tensors) floats(name string, dimensions int) ([]float32, []int) {
	b, shape := t.bytes(name, "F32", dimensions)
	if t.err != nil {
		return nil, nil
	}
	if elements, ok := product(shape, len(b)/4); !ok || 4*elements != len(b) {
		t.fail("tensor %s has the shape %v, which does not fit its %d bytes", name, shape, len(b))
		return nil, nil
	}
	x := make([]float32, len(b)/4)
	for i := range x {
		x[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		if v := float64(x[i]); math.IsNaN(v) || math.IsInf(v, 0) {
			t.fail("tensor %s holds %v at element %d", name, v, i)
			return nil, nil
		}
	}
	return x, shape
}

// product multiplies the dimensions of a shape, and is false if one is negative or the
// product is above limit.
func product(shape []int, limit int) (int, bool) {
	elements := 1
	for _, n := range shape {
		if n < 0 || n > 0 && elements > limit/n {
			return 0, false
		}
		elements *= n
	}
	return elements, true
}

func (t *tensors) matrix(name string, to *[]float32) (rows, columns int) {
	x, shape := t.floats(name, 2)
	if t.err != nil {
		return 0, 0
	}
	*to = x
	return shape[0], shape[1]
}

// vector reads an optional tensor of n elements.
func (t *tensors) vector(name string, n int, to *[]float32) {
	if _, ok := t.header[name]; !ok || t.err != nil {
		return
	}
	x, _ := t.floats(name, 1)
	if t.err == nil && len(x) != n {
		t.fail("tensor %s has %d elements, want %d", name, len(x), n)
	}
	*to = x
}

func (t *tensors) ids(name string, n int) *dataset.IDs {
	b, _ := t.bytes(name, "U8", 1)
	if t.err != nil {
		return nil
	}
	d := new(dataset.IDs)
	if err := d.UnmarshalBinary(b); err != nil {
		t.fail("tensor %s: %w", name, err)
	} else if d.Len() != n {
		t.fail("tensor %s names %d ids, want %d", name, d.Len(), n)
	}
	return d
}

// littleEndian returns the bytes of x in little-endian order, without a copy where
// that is the machine's own order.
func littleEndian(x []float32) []byte {
	if len(x) == 0 {
		return nil
	}
	if nativeLittleEndian {
		return unsafe.Slice((*byte)(unsafe.Pointer(&x[0])), 4*len(x))
	}
	b := make([]byte, 4*len(x))
	for i, v := range x {
		binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(v))
	}
	return b
}

var nativeLittleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1
