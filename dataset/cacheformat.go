package dataset

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"unsafe"
)

// The cache file holds a matrix as it lies in memory, so that it can be mapped instead of read. All numbers are
// little-endian; sections begin at multiples of 64 bytes, in this order, and the gaps are zero.
//
//	offset  size
//	0       8     "DPMFRAT\n"
//	8       4     version, 1
//	12      4     number of sections, 10
//	16      8     users
//	24      8     items
//	32      8     ratings
//	40      8     size of the source in bytes; -1 for generated data
//	48      8     modification time of the source, nanoseconds since 1970
//	56      8     when the source was last seen to have the digest, nanoseconds since 1970
//	64      32    SHA-256 of the source
//	96      8     mean of the ratings (float64)
//	104     12    scale: min, max, step (float32 each)
//	128     16·10 sections: offset and length in bytes
//	4092    4     CRC-32C of the bytes before
//
//	section 0     offsets by user (int64, users+1)
//	        1     items by user (int32)
//	        2     ratings by user (float32)
//	        3     offsets by item (int64, items+1)
//	        4     users by item (int32)
//	        5     ratings by item (float32)
//	        6     user ids, as IDs.MarshalBinary writes them
//	        7     item ids
//	        8     Info and the key of the cache, in JSON
//	        9     CRC-32C (uint32) of each MiB·4 of the file from byte 4096 up to this section
const (
	cacheMagic    = "DPMFRAT\n"
	cacheVersion  = 1
	cacheSections = 10
	cacheHeader   = 4096
	cacheBlock    = 4 << 20
)

const (
	secUserPtr = iota
	secRowItem
	secRowVal
	secItemPtr
	secColUser
	secColVal
	secUserIDs
	secItemIDs
	secMeta
	secSums
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// cacheSource identifies the version of a file that a cache was made from.
type cacheSource struct {
	size     int64
	mtime    int64
	verified int64
	sha      [32]byte
}

// cacheMeta is section 8.
type cacheMeta struct {
	Key  string // what, besides the content of the source, decides the matrix
	Info Info
}

// littleEndian tells whether sections can be used as they are.
var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// word is a type of number that sections hold.
type word interface{ int32 | int64 | float32 }

// view is the numbers in a section: the bytes themselves on a little-endian machine, a copy on others.
// b is aligned to its elements because sections are and files are mapped at page boundaries.
func view[T word](b []byte) []T {
	var zero T
	n := len(b) / int(unsafe.Sizeof(zero))
	if n == 0 {
		return nil
	}
	if littleEndian && uintptr(unsafe.Pointer(&b[0]))%unsafe.Alignof(zero) == 0 {
		return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), n)
	}
	out := make([]T, n)
	if _, err := binary.Decode(b, binary.LittleEndian, out); err != nil {
		panic("dataset: " + err.Error()) // the sizes agree by construction
	}
	return out
}

// rawBytes is the little-endian form of numbers.
func rawBytes[T word](s []T) []byte {
	if len(s) == 0 {
		return nil
	}
	if littleEndian {
		return unsafe.Slice((*byte)(unsafe.Pointer(&s[0])), len(s)*int(unsafe.Sizeof(s[0])))
	}
	out, err := binary.Append(nil, binary.LittleEndian, s)
	if err != nil {
		panic("dataset: " + err.Error())
	}
	return out
}

// encodeHeader is the first 4096 bytes of a cache file.
func encodeHeader(r *Ratings, src cacheSource, sections [cacheSections][2]int64) []byte {
	le := binary.LittleEndian
	h := make([]byte, cacheHeader)
	copy(h, cacheMagic)
	le.PutUint32(h[8:], cacheVersion)
	le.PutUint32(h[12:], cacheSections)
	le.PutUint64(h[16:], uint64(r.users))
	le.PutUint64(h[24:], uint64(r.items))
	le.PutUint64(h[32:], uint64(len(r.rowItem)))
	putSource(h, src)
	le.PutUint64(h[96:], math.Float64bits(r.mean))
	for k, v := range []float32{r.scale.Min, r.scale.Max, r.scale.Step} {
		le.PutUint32(h[104+4*k:], math.Float32bits(v))
	}
	for k, s := range sections {
		le.PutUint64(h[128+16*k:], uint64(s[0]))
		le.PutUint64(h[136+16*k:], uint64(s[1]))
	}
	sealHeader(h)
	return h
}

func putSource(h []byte, src cacheSource) {
	le := binary.LittleEndian
	le.PutUint64(h[40:], uint64(src.size))
	le.PutUint64(h[48:], uint64(src.mtime))
	le.PutUint64(h[56:], uint64(src.verified))
	copy(h[64:96], src.sha[:])
}

func sealHeader(h []byte) {
	binary.LittleEndian.PutUint32(h[cacheHeader-4:], crc32.Checksum(h[:cacheHeader-4], castagnoli))
}

// writeCache writes r in the cache format.
func writeCache(ctx context.Context, w io.WriterAt, r *Ratings, src cacheSource, key string, progress func(done, total int64)) error {
	userIDs, err := r.userIDs.MarshalBinary()
	if err != nil {
		return err
	}
	itemIDs, err := r.itemIDs.MarshalBinary()
	if err != nil {
		return err
	}
	info := r.info
	info.Warnings = nil
	meta, err := json.Marshal(cacheMeta{key, info})
	if err != nil {
		return err
	}
	content := [cacheSections][]byte{
		rawBytes(r.userPtr), rawBytes(r.rowItem), rawBytes(r.rowVal),
		rawBytes(r.itemPtr), rawBytes(r.colUser), rawBytes(r.colVal),
		userIDs, itemIDs, meta, nil,
	}
	var sections [cacheSections][2]int64
	end := int64(cacheHeader)
	for k, c := range content {
		end = (end + 63) &^ 63
		sections[k] = [2]int64{end, int64(len(c))}
		end += int64(len(c))
	}
	sums := &blockSums{}
	pad := make([]byte, 64)
	at := int64(cacheHeader)
	put := func(b []byte) error {
		for len(b) > 0 {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			n := min(len(b), cacheBlock)
			if _, err := w.WriteAt(b[:n], at); err != nil {
				return err
			}
			sums.add(b[:n])
			at += int64(n)
			b = b[n:]
			if progress != nil {
				progress(at, end)
			}
		}
		return nil
	}
	for k, c := range content {
		if err := put(pad[:sections[k][0]-at]); err != nil {
			return err
		}
		if k == secSums {
			break
		}
		if err := put(c); err != nil {
			return err
		}
	}
	list := sums.finish()
	sections[secSums][1] = int64(len(list))
	if _, err := w.WriteAt(list, at); err != nil {
		return err
	}
	_, err = w.WriteAt(encodeHeader(r, src, sections), 0)
	return err
}

// blockSums makes the checksums of successive blocks of a stream.
type blockSums struct {
	list []byte
	crc  uint32
	n    int // bytes in the block so far
}

func (s *blockSums) add(b []byte) {
	for len(b) > 0 {
		k := min(len(b), cacheBlock-s.n)
		s.crc = crc32.Update(s.crc, castagnoli, b[:k])
		s.n += k
		b = b[k:]
		if s.n == cacheBlock {
			s.flush()
		}
	}
}

func (s *blockSums) flush() {
	s.list = binary.LittleEndian.AppendUint32(s.list, s.crc)
	s.crc, s.n = 0, 0
}

func (s *blockSums) finish() []byte {
	if s.n > 0 {
		s.flush()
	}
	return s.list
}

// decodeCache checks every byte of a cache file and returns the matrix in it, which aliases b. Nothing in b is trusted:
// checksums find damage, and the checks after them make sure that even a file forged with correct checksums
// cannot lead outside the matrix.
func decodeCache(ctx context.Context, b []byte, workers int) (*Ratings, cacheSource, string, error) {
	fail := func(format string, args ...any) (*Ratings, cacheSource, string, error) {
		return nil, cacheSource{}, "", fmt.Errorf(format, args...)
	}
	le := binary.LittleEndian
	if len(b) < cacheHeader {
		return fail("it has only %d bytes", len(b))
	}
	if string(b[:8]) != cacheMagic {
		return fail("it does not begin with the signature of a cache")
	}
	if v := le.Uint32(b[8:]); v != cacheVersion {
		return fail("it has version %d instead of %d", v, cacheVersion)
	}
	if crc32.Checksum(b[:cacheHeader-4], castagnoli) != le.Uint32(b[cacheHeader-4:]) {
		return fail("the checksum of its header is wrong")
	}
	users, items, ratings := le.Uint64(b[16:]), le.Uint64(b[24:]), le.Uint64(b[32:])
	if le.Uint32(b[12:]) != cacheSections || users == 0 || items == 0 || users > math.MaxInt32 || items > math.MaxInt32 || ratings > uint64(len(b)) {
		return fail("its header claims %d users, %d items and %d ratings", users, items, ratings)
	}
	var sec [cacheSections][]byte
	last := uint64(cacheHeader)
	for k := range sec {
		at, n := le.Uint64(b[128+16*k:]), le.Uint64(b[136+16*k:])
		if at%64 != 0 || at < last || at-last >= 64 || n > uint64(len(b)) || at > uint64(len(b))-n {
			return fail("section %d (%d bytes at %d) does not fit a file of %d bytes", k, n, at, len(b))
		}
		sec[k] = b[at : at+n]
		last = at + n
	}
	if last != uint64(len(b)) {
		return fail("it has %d bytes instead of %d", len(b), last)
	}
	for k, want := range map[int]uint64{
		secUserPtr: 8 * (users + 1), secRowItem: 4 * ratings, secRowVal: 4 * ratings,
		secItemPtr: 8 * (items + 1), secColUser: 4 * ratings, secColVal: 4 * ratings,
	} {
		if uint64(len(sec[k])) != want {
			return fail("section %d has %d bytes instead of %d", k, len(sec[k]), want)
		}
	}
	payload := b[cacheHeader : len(b)-len(sec[secSums])]
	blocks := (len(payload) + cacheBlock - 1) / cacheBlock
	if len(sec[secSums]) != 4*blocks {
		return fail("it has %d bytes of checksums for %d blocks", len(sec[secSums]), blocks)
	}
	err := parallel(ctx, workers, blocks, func(k int) error {
		block := payload[k*cacheBlock : min((k+1)*cacheBlock, len(payload))]
		if crc32.Checksum(block, castagnoli) != le.Uint32(sec[secSums][4*k:]) {
			return fmt.Errorf("the checksum of block %d is wrong", k)
		}
		return nil
	})
	if err != nil {
		return nil, cacheSource{}, "", err
	}

	r := &Ratings{
		users: int(users), items: int(items),
		userPtr: view[int64](sec[secUserPtr]), rowItem: view[int32](sec[secRowItem]), rowVal: view[float32](sec[secRowVal]),
		itemPtr: view[int64](sec[secItemPtr]), colUser: view[int32](sec[secColUser]), colVal: view[float32](sec[secColVal]),
		userIDs: new(IDs), itemIDs: new(IDs),
		mean: math.Float64frombits(le.Uint64(b[96:])),
		scale: Scale{
			Min:  math.Float32frombits(le.Uint32(b[104:])),
			Max:  math.Float32frombits(le.Uint32(b[108:])),
			Step: math.Float32frombits(le.Uint32(b[112:])),
		},
	}
	if err := checkCompressed(ctx, workers, r.userPtr, r.rowItem, r.rowVal, r.items); err != nil {
		return fail("the matrix by user is broken: %w", err)
	}
	if err := checkCompressed(ctx, workers, r.itemPtr, r.colUser, r.colVal, r.users); err != nil {
		return fail("the matrix by item is broken: %w", err)
	}
	if err := errors.Join(r.userIDs.UnmarshalBinary(sec[secUserIDs]), r.itemIDs.UnmarshalBinary(sec[secItemIDs])); err != nil {
		return fail("its ids are broken: %w", err)
	}
	if r.userIDs.Len() != r.users || r.itemIDs.Len() != r.items {
		return fail("it names %d users and %d items of %d and %d", r.userIDs.Len(), r.itemIDs.Len(), r.users, r.items)
	}
	if !(r.mean-r.mean == 0) || !(r.scale.Max-r.scale.Min >= 0) || !(r.scale.Step >= 0) {
		return fail("its mean %v or scale %v is impossible", r.mean, r.scale)
	}
	var meta cacheMeta
	dec := json.NewDecoder(bytes.NewReader(sec[secMeta]))
	if err := dec.Decode(&meta); err != nil {
		return fail("its description is broken: %w", err)
	}
	r.info = meta.Info
	src := cacheSource{size: int64(le.Uint64(b[40:])), mtime: int64(le.Uint64(b[48:])), verified: int64(le.Uint64(b[56:]))}
	copy(src.sha[:], b[64:96])
	return r, src, meta.Key, nil
}

// checkCompressed makes sure that offsets ascend from 0 to the number of entries, that indices are below cols and ascend
// strictly within each row, and that values are finite.
func checkCompressed(ctx context.Context, workers int, ptr []int64, idx []int32, val []float32, cols int) error {
	rows := len(ptr) - 1
	if ptr[0] != 0 || ptr[rows] != int64(len(idx)) {
		return fmt.Errorf("offsets run from %d to %d for %d entries", ptr[0], ptr[rows], len(idx))
	}
	for k := range rows {
		if ptr[k+1] < ptr[k] {
			return fmt.Errorf("offset %d is %d, below the one before", k+1, ptr[k+1])
		}
	}
	parts := 1 + len(idx)>>18
	return parallel(ctx, workers, parts, func(p int) error {
		from, to := rowRange(ptr, parts, p)
		for row := from; row < to; row++ {
			last := int32(-1)
			for _, c := range idx[ptr[row]:ptr[row+1]] {
				if c <= last || int(c) >= cols {
					return fmt.Errorf("row %d has index %d after %d, of %d", row, c, last, cols)
				}
				last = c
			}
		}
		bad := uint32(0)
		for _, v := range val[ptr[from]:ptr[to]] {
			// The exponent of infinities and NaN is all ones; adding one to it overflows.
			bad |= math.Float32bits(v)&0x7f800000 + 0x00800000
		}
		if bad>>31 != 0 {
			return errors.New("a rating is not finite")
		}
		return nil
	})
}

// touchCache records that the source of a cache file was seen unchanged, with another modification time. The header
// is written in place: should that stop halfway, its checksum is wrong and the cache is made anew.
func touchCache(path string, header []byte, src cacheSource) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	h := bytes.Clone(header[:cacheHeader])
	putSource(h, src)
	sealHeader(h)
	_, err = f.WriteAt(h, 0)
	return errors.Join(err, f.Close())
}
