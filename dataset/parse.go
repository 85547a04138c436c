package dataset

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
)

// lineError is a fault in one line of the input.
type lineError struct {
	line    int64 // from 1, or relative to the chunk while that is being parsed
	problem string
}

// maxNumericID bounds the ids of the numeric form, which marks them in a bit set (32 MiB at most). Larger ones
// and ids that are no plain integers take the slower way through names.
const maxNumericID = 1<<28 - 1

// parser turns chunks of whole lines into triples. Each worker has its own.
type parser struct {
	layout
	fast    bool  // fields 0, 1, 2 of a common delimiter
	names   bool  // ids go through userNames and itemNames rather than users and items
	check   bool  // ratings outside scale are faults
	scale   Scale // valid if check
	skipBad bool

	users, items         idSet
	userNames, itemNames nameSet
	scratch              [][]byte
}

func newParser(l layout, names bool, scale Scale, skipBad bool) *parser {
	p := &parser{layout: l, names: names, scale: scale, check: scale != Scale{}, skipBad: skipBad}
	p.fast = !names && l.user == 0 && l.item == 1 && l.rating == 2 && (len(l.delim) == 1 || l.delim == "::")
	if names {
		p.userNames, p.itemNames = nameSet{}, nameSet{}
	}
	return p
}

// chunkResult is what one chunk held. Ids in triples are those of the file, or numbers of the parser's own names.
type chunkResult struct {
	parser    *parser
	triples   []Triple
	lines     int64
	skipped   int64
	firstSkip *lineError
	err       *lineError
	needNames bool // the chunk has ids that the numeric form cannot hold; nothing else is valid
}

// chunk parses buf, which consists of whole lines, each ending in '\n'. room is the expected number of them.
func (p *parser) chunk(buf []byte, room int) chunkResult {
	res := chunkResult{parser: p, triples: make([]Triple, 0, room)}
	for len(buf) > 0 {
		if p.fast {
			n, lines := p.fastLines(buf, &res.triples)
			buf = buf[n:]
			res.lines += lines
			if len(buf) == 0 {
				break
			}
		}
		// One line the careful way: it is not of the common form.
		end := bytes.IndexByte(buf, '\n')
		line := buf[:end]
		buf = buf[end+1:]
		res.lines++
		line = bytes.TrimSuffix(line, []byte("\r"))
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		t, problem, err := p.line(line)
		switch {
		case err != nil:
			res.needNames = true
			return res
		case problem == "":
			res.triples = append(res.triples, t)
		case p.skipBad:
			if res.skipped == 0 {
				res.firstSkip = &lineError{res.lines, problem}
			}
			res.skipped++
		default:
			res.err = &lineError{res.lines, problem}
			return res
		}
	}
	return res
}

// pow10 are exact in float32, and so is any integer of seven digits: their quotient is the correctly rounded value of
// the decimal fraction, as strconv.ParseFloat gives it.
var pow10 = [...]float32{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7}

// pointLessZero is '.' - '0' as a byte.
const pointLessZero = 0x100 + '.' - '0'

// fastLines parses lines of the common form, "digits delimiter digits delimiter decimal", up to the first that is not,
// and returns the bytes and lines it consumed.
func (p *parser) fastLines(buf []byte, triples *[]Triple) (consumed int, lines int64) {
	d0 := p.delim[0]
	double := len(p.delim) == 2
	out := *triples
	users, items := p.users, p.items
	lo, hi := float32(math.Inf(-1)), float32(math.Inf(1))
	if p.check {
		lo, hi = p.scale.Min, p.scale.Max
	}
	at := 0
	for at < len(buf) {
		// Each field may run into the '\n' at the end of buf, never past it.
		k := at
		first := k
		u := uint32(0)
		c := buf[k] - '0'
		for c <= 9 {
			u = u*10 + uint32(c)
			k++
			c = buf[k] - '0'
		}
		// Nine digits fit; a leading zero would be lost.
		if uint(k-first-1) > 8 || c+'0' != d0 || (buf[first] == '0' && k-first > 1) {
			break
		}
		k++
		if double {
			if buf[k] != d0 {
				break
			}
			k++
		}

		first = k
		i := uint32(0)
		c = buf[k] - '0'
		for c <= 9 {
			i = i*10 + uint32(c)
			k++
			c = buf[k] - '0'
		}
		if uint(k-first-1) > 8 || c+'0' != d0 || (buf[first] == '0' && k-first > 1) {
			break
		}
		k++
		if double {
			if buf[k] != d0 {
				break
			}
			k++
		}

		first = k
		m := uint32(0)
		c = buf[k] - '0'
		for c <= 9 {
			m = m*10 + uint32(c)
			k++
			c = buf[k] - '0'
		}
		digits, decimals := k-first, 0
		if c == pointLessZero && digits > 0 {
			k++
			point := k
			c = buf[k] - '0'
			for c <= 9 {
				m = m*10 + uint32(c)
				k++
				c = buf[k] - '0'
			}
			decimals = k - point
			digits += decimals
		}
		if uint(digits-1) > 6 {
			break
		}
		v := float32(m)
		if decimals != 0 {
			v /= pow10[decimals]
		}
		if v < lo || v > hi {
			break
		}
		switch c + '0' {
		case '\n':
			k++
		case '\r':
			if buf[k+1] != '\n' {
				goto careful
			}
			k += 2
		default:
			if c+'0' != d0 || (double && buf[k+1] != d0) {
				goto careful
			}
			k += bytes.IndexByte(buf[k:], '\n') + 1
		}
		if u > maxNumericID || i > maxNumericID {
			break
		}
		users.mark(u)
		items.mark(i)
		out = append(out, Triple{int32(u), int32(i), v})
		lines++
		at = k
	}
careful:
	p.users, p.items = users, items
	*triples = out
	return at, lines
}

var errNeedNames = errors.New("dataset: ids that are no small integers")

// line parses one line of any form. The error is errNeedNames if its ids do not fit the numeric form.
func (p *parser) line(line []byte) (t Triple, problem string, err error) {
	need := p.fields()
	p.scratch, problem = splitFields(line, p.delim, p.scratch[:0], need)
	f := p.scratch
	if problem != "" {
		return t, problem, nil
	}
	if len(f) < need {
		return t, fmt.Sprintf("%d fields are needed, but %s has %d", need, quote(line), len(f)), nil
	}
	if len(f[p.user]) == 0 {
		return t, "the user id is empty", nil
	}
	if len(f[p.item]) == 0 {
		return t, "the item id is empty", nil
	}
	if t.Value, problem = p.parseRating(f[p.rating]); problem != "" {
		return t, problem, nil
	}
	if p.names {
		t.User, t.Item = p.userNames.add(f[p.user]), p.itemNames.add(f[p.item])
		return t, "", nil
	}
	u, okUser := plainInteger(f[p.user])
	i, okItem := plainInteger(f[p.item])
	if !okUser || !okItem || u > maxNumericID || i > maxNumericID {
		return t, "", errNeedNames
	}
	p.users.mark(uint32(u))
	p.items.mark(uint32(i))
	t.User, t.Item = int32(u), int32(i)
	return t, "", nil
}

func (p *parser) parseRating(b []byte) (v float32, problem string) {
	if len(b) == 0 {
		return 0, "the rating is empty"
	}
	x, err := strconv.ParseFloat(string(b), 32)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, fmt.Sprintf("the rating %s is too large", quote(b))
	case err != nil:
		return 0, fmt.Sprintf("the rating %s is not a number", quote(b))
	case math.IsNaN(x) || math.IsInf(x, 0):
		return 0, fmt.Sprintf("the rating %s is not a finite number", quote(b))
	}
	v = float32(x)
	if p.check && (v < p.scale.Min || v > p.scale.Max) {
		return 0, fmt.Sprintf("the rating %s is outside the scale %v to %v", quote(b), p.scale.Min, p.scale.Max)
	}
	return v, ""
}
