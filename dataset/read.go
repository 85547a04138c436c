package dataset

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"sync"

	"golang.org/x/sync/errgroup"
)

// chunkBytes is how much text a worker parses at a time, about 5 ms of work. No line may be longer.
const chunkBytes = 4 << 20

// readFile parses a file of ratings. Info has counts, the source and its digest, but no name. The digest is taken
// while reading. size and mtime of the file before and after must agree, lest half of a rewritten file be taken.
func readFile(ctx context.Context, name string, opts *Options, scale Scale) (*Ratings, error) {
	before, err := os.Stat(name)
	if err != nil {
		return nil, fileError(name, err)
	}
	p, digest, err := parseFile(ctx, name, opts, scale, false)
	if errors.Is(err, errNeedNames) {
		p, digest, err = parseFile(ctx, name, opts, scale, true)
	}
	if err != nil {
		return nil, err
	}
	after, err := os.Stat(name)
	if err != nil {
		return nil, fileError(name, err)
	}
	if before.Size() != after.Size() || !before.ModTime().Equal(after.ModTime()) {
		return nil, fmt.Errorf("dataset: %s was changed while it was being read", name)
	}
	r, err := p.assemble(ctx, opts)
	if err != nil {
		return nil, err
	}
	r.info.Source, r.info.SHA256 = name, digest
	r.scale = scale
	if scale == (Scale{}) {
		r.scale = fitScale(r.rowVal)
	}
	return r, nil
}

// parseFile reads the text in a file and, at the same time, the digest of the file.
func parseFile(ctx context.Context, name string, opts *Options, scale Scale, names bool) (*parsed, string, error) {
	src, err := openText(name)
	if err != nil {
		return nil, "", err
	}
	defer src.Close()
	if src.plain {
		h := sha256.New()
		p, err := parseText(ctx, src, h, opts, scale, names)
		return p, hex.EncodeToString(h.Sum(nil)), err
	}
	var p *parsed
	var digest string
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) { p, err = parseText(gctx, src, nil, opts, scale, names); return err })
	g.Go(func() (err error) { digest, err = hashFile(gctx, name); return err })
	err = g.Wait()
	return p, digest, err
}

// hashFile is the hex SHA-256 of a file.
func hashFile(ctx context.Context, name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", fileError(name, err)
	}
	defer f.Close()
	h := sha256.New()
	buf := make([]byte, 1<<20)
	for {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		n, err := f.Read(buf)
		h.Write(buf[:n])
		if err == io.EOF {
			return hex.EncodeToString(h.Sum(nil)), nil
		}
		if err != nil {
			return "", fileError(name, err)
		}
	}
}

// parsed is the outcome of reading a text: blocks of triples in its order, with ids of their parser.
type parsed struct {
	name      string
	parsers   []*parser
	names     bool
	blocks    []chunkResult
	skipped   int64
	firstSkip string
}

// chunkWork is a piece of text on its way to a parser.
type chunkWork struct {
	index int
	text  []byte // whole lines
	buf   []byte // what text is a part of, for reuse
	room  int    // expected number of lines
}

// parseText reads all lines of src on opts.Workers parsers. One goroutine reads (and hashes, if h is not nil) and
// hands out chunks of whole lines. Line numbers are known only afterwards, from the lines of the chunks before.
func parseText(ctx context.Context, src *textSource, h hash.Hash, opts *Options, scale Scale, names bool) (*parsed, error) {
	workers := opts.workers()
	r := &chunkReader{src: src, hash: h, free: make(chan []byte, workers+2)}
	first, err := r.next(ctx)
	if err != nil {
		return nil, err
	}
	l, skip, firstLine, fault := r.begin(first, opts)
	if fault != nil {
		return nil, src.lineError(fault)
	}
	p := &parsed{name: src.name, names: names, parsers: make([]*parser, workers)}
	work := make(chan chunkWork)
	stop := make(chan struct{}) // closed at the first fault: chunks after it need not be read
	var stopOnce sync.Once
	var mu sync.Mutex
	done, faulty := int64(0), false
	g, gctx := errgroup.WithContext(ctx)
	for w := range workers {
		p.parsers[w] = newParser(l, names, scale, opts.SkipBadLines)
		g.Go(func() error {
			for c := range work {
				res := p.parsers[w].chunk(c.text, c.room)
				size := int64(len(c.text))
				r.recycle(c.buf)
				mu.Lock()
				for len(p.blocks) <= c.index {
					p.blocks = append(p.blocks, chunkResult{})
				}
				p.blocks[c.index] = res
				if res.err != nil || res.needNames {
					faulty = true
					stopOnce.Do(func() { close(stop) })
				}
				done += size
				if opts.Progress != nil {
					opts.Progress("read", done, src.size)
				}
				mu.Unlock()
			}
			return nil
		})
	}
	g.Go(func() error {
		defer close(work)
		c := chunkWork{text: first[skip:], buf: first}
		perLine := 0.0 // lines per byte in the first chunk
		for {
			if perLine == 0 {
				perLine = float64(bytes.Count(c.text, []byte("\n"))+1) / float64(len(c.text)+1)
			}
			c.room = int(float64(len(c.text))*perLine*1.03) + 16
			select {
			case work <- c:
			case <-stop:
				return nil
			case <-gctx.Done():
				return context.Cause(gctx)
			}
			text, err := r.next(gctx)
			if err != nil {
				return err
			}
			if text == nil {
				return nil
			}
			c = chunkWork{index: c.index + 1, text: text, buf: text}
		}
	})
	err = g.Wait()
	// The first fault in the order of the file counts, and a line before damage in a packed file counts before it.
	line := firstLine
	var triples int64
	for _, b := range p.blocks {
		if b.needNames {
			return nil, errNeedNames
		}
		if b.err != nil {
			return nil, src.lineError(&lineError{line + b.err.line, b.err.problem})
		}
		if b.firstSkip != nil && p.firstSkip == "" {
			p.firstSkip = src.lineError(&lineError{line + b.firstSkip.line, b.firstSkip.problem}).Error()
		}
		p.skipped += b.skipped
		line += b.lines
		triples += int64(len(b.triples))
	}
	if err != nil {
		return nil, err
	}
	if faulty {
		return nil, fmt.Errorf("dataset: %s cannot be read", src.name) // unreachable: every fault is in a block
	}
	if triples == 0 {
		if p.skipped > 0 {
			return nil, fmt.Errorf("dataset: %s has no rating that can be read: all of its %d lines are bad (%s)", src.name, p.skipped, p.firstSkip)
		}
		return nil, fmt.Errorf("dataset: %s has no ratings", src.name)
	}
	return p, nil
}

func (s *textSource) lineError(e *lineError) error {
	return fmt.Errorf("dataset: %s:%d: %s", s.name, e.line, e.problem)
}

// chunkReader cuts a text into chunks of whole lines.
type chunkReader struct {
	src   *textSource
	hash  hash.Hash // of the text; may be nil
	free  chan []byte
	carry []byte // the beginning of a line at the end of the chunk before
	lines int64  // complete lines so far, counted only to report a line that is too long
	ended bool
}

func (r *chunkReader) recycle(buf []byte) {
	select {
	case r.free <- buf[:0]:
	default:
	}
}

// next returns whole lines, each ending in '\n' even if the last one of the file does not, or nil at the end.
func (r *chunkReader) next(ctx context.Context) ([]byte, error) {
	if r.ended {
		return nil, nil
	}
	var buf []byte
	select {
	case buf = <-r.free:
	default:
		size := chunkBytes
		if r.src.plain && r.src.size > 0 {
			size = int(min(chunkBytes, max(r.src.size+1, 1<<16)))
		}
		buf = make([]byte, 0, size+1) // one more for a '\n' at the end of the file
	}
	limit := cap(buf) - 1
	buf = append(buf[:0], r.carry...)
	for {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		// A step of half a megabyte is still in the cache when it is hashed.
		n, err := r.src.Read(buf[len(buf):min(len(buf)+1<<19, limit)])
		read := buf[len(buf) : len(buf)+n]
		buf = buf[:len(buf)+n]
		if r.hash != nil {
			r.hash.Write(read)
		}
		if err == io.EOF {
			r.ended = true
			if len(buf) == 0 {
				return nil, nil
			}
			if buf[len(buf)-1] != '\n' {
				buf = append(buf, '\n')
			}
			return buf, nil
		}
		if err != nil {
			if r.src.plain {
				return nil, fileError(r.src.name, err)
			}
			return nil, packedError(r.src.name, err)
		}
		if len(buf) < limit {
			continue
		}
		end := bytes.LastIndexByte(buf, '\n') + 1
		if end == 0 {
			return nil, r.src.lineError(&lineError{r.lines + 1, fmt.Sprintf("the line is longer than %d bytes; this is no file of ratings", limit)})
		}
		r.carry = append(r.carry[:0], buf[end:]...)
		r.lines += int64(bytes.Count(buf[:end], []byte("\n")))
		return buf[:end], nil
	}
}

// begin finds the layout in the first chunk, and the length and number of the lines that are not data.
func (r *chunkReader) begin(chunk []byte, opts *Options) (l layout, skip int, lines int64, fault *lineError) {
	rest := trimBOM(chunk)
	if bytes.HasPrefix(rest, []byte("\xff\xfe")) || bytes.HasPrefix(rest, []byte("\xfe\xff")) {
		return l, 0, 0, &lineError{1, "the file is UTF-16; convert it to UTF-8 first"}
	}
	for len(rest) > 0 {
		end := bytes.IndexByte(rest, '\n')
		text := bytes.TrimSuffix(rest[:end], []byte("\r"))
		if len(bytes.TrimSpace(text)) == 0 {
			rest = rest[end+1:]
			lines++
			continue
		}
		l, fault = detectLayout(text, lines+1, opts)
		if l.header {
			rest = rest[end+1:]
			lines++
		}
		return l, len(chunk) - len(rest), lines, fault
	}
	return layout{delim: ","}, len(chunk), lines, nil // nothing but blank lines; reported as no ratings
}

// assemble numbers the ids and builds the matrix.
func (p *parsed) assemble(ctx context.Context, opts *Options) (*Ratings, error) {
	workers := opts.workers()
	var userIDs, itemIDs *IDs
	var err error
	if p.names {
		var users, items map[*parser][]int32
		if userIDs, users, err = numberNames(p.parsers, func(q *parser) nameSet { return q.userNames }); err != nil {
			return nil, err
		}
		if itemIDs, items, err = numberNames(p.parsers, func(q *parser) nameSet { return q.itemNames }); err != nil {
			return nil, err
		}
		err = p.renumber(ctx, workers, func(b *chunkResult) {
			user, item := users[b.parser], items[b.parser]
			for k, t := range b.triples {
				b.triples[k].User, b.triples[k].Item = user[t.User], item[t.Item]
			}
		})
	} else {
		var userSet, itemSet idSet
		for _, q := range p.parsers {
			userSet.union(&q.users)
			itemSet.union(&q.items)
		}
		userIDs, itemIDs = idsOfNumbers(userSet.rank()), idsOfNumbers(itemSet.rank())
		err = p.renumber(ctx, workers, func(b *chunkResult) {
			for k := range b.triples {
				t := &b.triples[k]
				t.User, t.Item = userSet.index(uint32(t.User)), itemSet.index(uint32(t.Item))
			}
		})
	}
	if err != nil {
		return nil, err
	}
	blocks := make([][]Triple, len(p.blocks))
	for k := range p.blocks {
		blocks[k] = p.blocks[k].triples
	}
	p.blocks = nil
	progress := func(done, total int64) {
		if opts.Progress != nil {
			opts.Progress("build", done, total)
		}
	}
	r, err := build(ctx, workers, userIDs.Len(), itemIDs.Len(), blocks, progress)
	if err != nil {
		return nil, err
	}
	r.userIDs, r.itemIDs = userIDs, itemIDs
	r.info.SkippedLines, r.info.FirstSkipped = p.skipped, p.firstSkip
	return r, nil
}

func (p *parsed) renumber(ctx context.Context, workers int, f func(b *chunkResult)) error {
	return parallel(ctx, workers, len(p.blocks), func(k int) error { f(&p.blocks[k]); return nil })
}

// numberNames numbers the names that several parsers collected, and returns the new number of each parser's own ones.
func numberNames(parsers []*parser, names func(*parser) nameSet) (*IDs, map[*parser][]int32, error) {
	sets := make([]nameSet, len(parsers))
	for k, q := range parsers {
		sets[k] = names(q)
	}
	ids, remap, err := mergeNames(sets)
	if err != nil {
		return nil, nil, err
	}
	byParser := make(map[*parser][]int32, len(parsers))
	for k, q := range parsers {
		byParser[q] = remap[k]
	}
	return ids, byParser, nil
}

// idsOfNumbers makes ids of ascending numbers.
func idsOfNumbers(numbers []int64) *IDs {
	if n := len(numbers); n > 0 && numbers[n-1] == int64(n-1) {
		return IdentityIDs(n)
	}
	return &IDs{n: len(numbers), numbers: numbers}
}
