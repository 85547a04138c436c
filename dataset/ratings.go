package dataset

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"slices"
)

// Ratings is a sparse users × items matrix, immutable after construction and safe for concurrent reading.
//
// Users and items are numbered 0..n-1 in int32; UserIDs and ItemIDs translate to the names of the source. Values are
// float32. The slices that the accessors return alias the matrix and must not be written to.
type Ratings struct {
	users, items int

	// Compressed sparse rows: the ratings of user u are positions userPtr[u] to userPtr[u+1].
	userPtr []int64
	rowItem []int32
	rowVal  []float32

	// Compressed sparse columns: the ratings of item i are positions itemPtr[i] to itemPtr[i+1].
	itemPtr []int64
	colUser []int32
	colVal  []float32

	userIDs, itemIDs *IDs
	scale            Scale
	mean             float64
	info             Info

	mapping *mapping // the mapped cache file behind the slices; nil when they are ordinary memory
}

// Scale is the set of values a rating may take: Min, Min+Step, …, Max. Step 0 means any value between Min and Max.
type Scale struct {
	Min, Max, Step float32
}

// Info says where a Ratings came from and what happened to it on the way.
type Info struct {
	Name      string // name of the data set, such as "ml1m", or the base name of the file
	Source    string // path of the file read, or "synthetic"
	SHA256    string // hex digest of the source file; of the content (ContentSHA256) for synthetic data
	Synthetic bool   // generated, not observed
	Seed      uint64 // seed of synthetic data

	Duplicates   int64  // ratings overwritten by a later one of the same user and item
	SkippedLines int64  // bad lines left out because Options.SkipBadLines was set
	FirstSkipped string // the error that the first skipped line would have been
	FromCache    bool   // reopened from the binary cache rather than parsed or generated

	// ScaleFromRatings says that no scale was given or published, so that Scale tells the least and the greatest of the
	// ratings exactly. A private trainer must not release it.
	ScaleFromRatings bool

	Warnings []string // everything sent to Options.Warn while opening, one sentence each
}

// Triple is one rating. User and Item are zero-based.
type Triple struct {
	User, Item int32
	Value      float32
}

// NumUsers is the number of rows, users without a rating included.
func (r *Ratings) NumUsers() int { return r.users }

// NumItems is the number of columns, items without a rating included.
func (r *Ratings) NumItems() int { return r.items }

// NumRatings is the number of stored entries.
func (r *Ratings) NumRatings() int { return len(r.rowItem) }

// User returns the items rated by user u in ascending order, and the ratings, both of the same length.
// It panics if u is not in 0..NumUsers()-1.
func (r *Ratings) User(u int) (items []int32, values []float32) {
	a, b := r.userPtr[u], r.userPtr[u+1]
	return r.rowItem[a:b:b], r.rowVal[a:b:b]
}

// Item returns the users who rated item i in ascending order, and their ratings, both of the same length.
// It panics if i is not in 0..NumItems()-1.
func (r *Ratings) Item(i int) (users []int32, values []float32) {
	a, b := r.itemPtr[i], r.itemPtr[i+1]
	return r.colUser[a:b:b], r.colVal[a:b:b]
}

// UserCount is the number of ratings of user u.
func (r *Ratings) UserCount(u int) int { return int(r.userPtr[u+1] - r.userPtr[u]) }

// ItemCount is the number of ratings of item i.
func (r *Ratings) ItemCount(i int) int { return int(r.itemPtr[i+1] - r.itemPtr[i]) }

// CSR returns the matrix by user: the ratings of user u are positions ptr[u] to ptr[u+1] of items and values.
// ptr has NumUsers()+1 elements.
func (r *Ratings) CSR() (ptr []int64, items []int32, values []float32) {
	return r.userPtr, r.rowItem, r.rowVal
}

// CSC returns the matrix by item: the ratings of item i are positions ptr[i] to ptr[i+1] of users and values.
// ptr has NumItems()+1 elements.
func (r *Ratings) CSC() (ptr []int64, users []int32, values []float32) {
	return r.itemPtr, r.colUser, r.colVal
}

// Value returns the rating of item i by user u, and false if there is none or an index is outside the matrix.
func (r *Ratings) Value(u, i int) (float32, bool) {
	if u < 0 || u >= r.users || i < 0 || i >= r.items {
		return 0, false
	}
	items, values := r.User(u)
	if k, ok := slices.BinarySearch(items, int32(i)); ok {
		return values[k], true
	}
	return 0, false
}

// UserIDs translates between row numbers and the user names of the source.
func (r *Ratings) UserIDs() *IDs { return r.userIDs }

// ItemIDs translates between column numbers and the item names of the source.
func (r *Ratings) ItemIDs() *IDs { return r.itemIDs }

// Mean is the average of all ratings, 0 for an empty matrix. It is an exact statistic of the data: a private trainer
// must not use it.
func (r *Ratings) Mean() float64 { return r.mean }

// Scale returns the smallest and largest possible rating and the distance between neighbouring ones (0: continuous).
//
// For a named data set this is its published scale, which is public. For other files it is taken from the
// ratings themselves unless Options.Scale gives it; a private trainer should then be given the bounds instead.
// Splits and filters keep the scale of their parent.
func (r *Ratings) Scale() (min, max, step float32) { return r.scale.Min, r.scale.Max, r.scale.Step }

// Info reports the origin of the data. The slice in it is a copy.
func (r *Ratings) Info() Info {
	info := r.info
	info.Warnings = slices.Clone(info.Warnings)
	return info
}

// MemoryBytes is the size of the matrix and its id maps, mapped files included.
func (r *Ratings) MemoryBytes() int64 {
	n := int64(len(r.rowItem)+len(r.colUser)) * 8
	n += int64(len(r.userPtr)+len(r.itemPtr)) * 8
	n += r.userIDs.memoryBytes()
	if r.itemIDs != r.userIDs {
		n += r.itemIDs.memoryBytes()
	}
	return n
}

// ContentSHA256 is the hex SHA-256 of the matrix by user: users, items and ratings as little-endian 64-bit
// integers, then for every user the number of ratings (64 bits) and per rating the item (32 bits) and the
// IEEE 754 bits of the value (32 bits). Ids of the source do not enter.
func (r *Ratings) ContentSHA256() string {
	h := sha256.New()
	buf := make([]byte, 0, 1<<16)
	le := binary.LittleEndian
	buf = le.AppendUint64(buf, uint64(r.users))
	buf = le.AppendUint64(buf, uint64(r.items))
	buf = le.AppendUint64(buf, uint64(len(r.rowItem)))
	for u := range r.users {
		items, values := r.User(u)
		buf = le.AppendUint64(buf, uint64(len(items)))
		for k, i := range items {
			buf = le.AppendUint32(buf, uint32(i))
			buf = le.AppendUint32(buf, math.Float32bits(values[k]))
			if len(buf) > 1<<16-64 {
				h.Write(buf)
				buf = buf[:0]
			}
		}
	}
	h.Write(buf)
	return hex.EncodeToString(h.Sum(nil))
}

// Close releases the mapped cache file behind the matrix, if there is one, and leaves the matrix empty.
//
// Calling it is optional: the mapping is read-only, costs no memory of its own, and otherwise lasts as long as the
// process. (It is not tied to garbage collection, because slices returned by User and Item point into it and
// do not keep it alive.) No slice obtained from r may be used afterwards; splits, filters and id maps are copies
// and stay valid.
func (r *Ratings) Close() error {
	m := r.mapping
	r.mapping = nil
	if m == nil {
		return nil
	}
	r.users, r.items = 0, 0
	r.userPtr, r.itemPtr = []int64{0}, []int64{0}
	r.rowItem, r.rowVal, r.colUser, r.colVal = nil, nil, nil, nil
	return m.unmap()
}
