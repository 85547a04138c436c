package dataset

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// layout says how the lines of a text file are to be read.
type layout struct {
	delim              string
	user, item, rating int  // field numbers, from 0
	header             bool // the first line that is not blank names the columns
}

// fields is the number of fields a line needs.
func (l *layout) fields() int { return 1 + max(l.user, l.item, l.rating) }

// delimiters are tried in this order; the first that divides a line into at least three fields is taken.
var delimiters = []string{"\t", "::", ",", ";", "|", " "}

// Column names found in published data sets, in the form that columnKey gives them.
var (
	userColumns   = []string{"user", "userid", "uid", "reviewer", "reviewerid", "customer", "customerid", "person", "personid", "visitorid", "username"}
	itemColumns   = []string{"item", "itemid", "iid", "movie", "movieid", "product", "productid", "asin", "parentasin", "book", "bookid", "isbn", "artist", "artistid", "track", "trackid", "song", "songid", "anime", "animeid", "business", "businessid"}
	ratingColumns = []string{"rating", "score", "stars", "value", "vote", "overall", "preference", "rate", "bookrating"}
)

const bom = "\ufeff"

// detectLayout reads the layout off the first line that is not blank. line is its number, from 1.
func detectLayout(text []byte, line int64, opts *Options) (layout, *lineError) {
	if at := bytes.IndexByte(text, 0); at >= 0 {
		return layout{}, &lineError{line, "the file is not text in UTF-8 (it has a zero byte)"}
	}
	l := layout{delim: opts.Delimiter, user: 0, item: 1, rating: 2}
	if l.delim == "" {
		for _, d := range delimiters {
			if f, _ := splitFields(text, d, nil, 3); len(f) >= 3 {
				l.delim = d
				break
			}
		}
	}
	if l.delim == "" {
		return l, &lineError{line, fmt.Sprintf("expected user, item and rating separated by a tab, \"::\", comma, semicolon, bar or space, but found %s", quote(text))}
	}
	raw, problem := splitFields(text, l.delim, nil, 1<<20)
	if problem != "" {
		return l, &lineError{line, problem}
	}
	names := make([]string, len(raw))
	for i, f := range raw {
		names[i] = columnKey(f)
	}
	find := func(wanted string, usual []string) int {
		if wanted == "" {
			return slices.IndexFunc(names, func(n string) bool { return slices.Contains(usual, n) })
		}
		if n, err := strconv.Atoi(wanted); err == nil {
			return n - 1
		}
		return slices.Index(names, columnKey([]byte(wanted)))
	}
	user, item, rating := find(opts.Columns.User, userColumns), find(opts.Columns.Item, itemColumns), find(opts.Columns.Rating, ratingColumns)

	// A header has names where a row has numbers. Names may be asked for, be the usual ones, or be unknown.
	at := func(c, usual int) []byte {
		if c < 0 {
			c = usual
		}
		if c < len(raw) {
			return raw[c]
		}
		return nil
	}
	_, ratingErr := strconv.ParseFloat(string(at(rating, 2)), 32)
	named := isName(opts.Columns.User) || isName(opts.Columns.Item) || isName(opts.Columns.Rating)
	usual := isNameColumn(names, userColumns) && isNameColumn(names, itemColumns)
	_, userNumeric := plainInteger(at(user, 0))
	_, itemNumeric := plainInteger(at(item, 1))
	l.header = named || usual || (ratingErr != nil && !userNumeric && !itemNumeric)
	if !l.header {
		for _, c := range []struct {
			to     *int
			wanted string
		}{{&l.user, opts.Columns.User}, {&l.item, opts.Columns.Item}, {&l.rating, opts.Columns.Rating}} {
			if c.wanted != "" {
				*c.to, _ = strconv.Atoi(c.wanted)
				*c.to--
			}
		}
		return l, l.check(line, len(raw))
	}
	for _, c := range []struct {
		what, wanted string
		found        int
	}{{"user", opts.Columns.User, user}, {"item", opts.Columns.Item, item}, {"rating", opts.Columns.Rating, rating}} {
		if c.found >= 0 || (c.wanted != "" && !isName(c.wanted)) {
			continue
		}
		if c.wanted != "" {
			return l, &lineError{line, fmt.Sprintf("there is no %s column %q in the header %s", c.what, c.wanted, quote(text))}
		}
		return l, &lineError{line, fmt.Sprintf("no column of the header %s looks like the %s; name it in the options", quote(text), c.what)}
	}
	l.user, l.item, l.rating = user, item, rating
	return l, l.check(line, len(raw))
}

func (l *layout) check(line int64, fields int) *lineError {
	for _, c := range []struct {
		what string
		at   int
	}{{"user", l.user}, {"item", l.item}, {"rating", l.rating}} {
		if c.at < 0 || c.at >= fields {
			return &lineError{line, fmt.Sprintf("the %s should be in field %d, but the line has %d fields", c.what, c.at+1, fields)}
		}
	}
	if l.user == l.item || l.user == l.rating || l.item == l.rating {
		return &lineError{line, fmt.Sprintf("user, item and rating must be different columns, not fields %d, %d and %d", l.user+1, l.item+1, l.rating+1)}
	}
	return nil
}

func isName(column string) bool {
	if column == "" {
		return false
	}
	_, err := strconv.Atoi(column)
	return err != nil
}

func isNameColumn(names, usual []string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return slices.Contains(usual, n) })
}

// columnKey makes "User ID", "user_id" and the "user_id:token" of some collections the same.
func columnKey(name []byte) string {
	s, _, _ := strings.Cut(strings.ToLower(string(name)), ":")
	return strings.Map(func(r rune) rune {
		if r == ' ' || r == '_' || r == '-' || r == '.' {
			return -1
		}
		return r
	}, s)
}

// splitFields divides a line into at most limit fields, appended to out; the last one is then cut off at its own
// delimiter, too. A field in double quotes may contain the delimiter, and a double quote written twice;
// other fields lose the blanks around them. The returned problem is "" if all is well.
func splitFields(line []byte, delim string, out [][]byte, limit int) (fields [][]byte, problem string) {
	blanks := " \t"
	if delim == " " || delim == "\t" {
		blanks = ""
	}
	for len(out) < limit {
		start := bytes.TrimLeft(line, blanks)
		if len(start) > 0 && start[0] == '"' {
			field, rest, ok := cutQuoted(start)
			if !ok {
				return out, fmt.Sprintf("the quoted field %s is not closed on its line", quote(start))
			}
			out = append(out, field)
			rest = bytes.TrimLeft(rest, blanks)
			if len(rest) == 0 {
				return out, ""
			}
			if !bytes.HasPrefix(rest, []byte(delim)) {
				return out, fmt.Sprintf("a quoted field is followed by %s instead of a delimiter", quote(rest))
			}
			line = rest[len(delim):]
			continue
		}
		at := -1
		if len(delim) == 1 {
			at = bytes.IndexByte(line, delim[0])
		} else {
			at = bytes.Index(line, []byte(delim))
		}
		if at < 0 {
			return append(out, trimBlanks(line, blanks)), ""
		}
		out = append(out, trimBlanks(line[:at], blanks))
		line = line[at+len(delim):]
	}
	return out, ""
}

func trimBlanks(b []byte, blanks string) []byte {
	if blanks == "" {
		return b
	}
	return bytes.Trim(b, blanks)
}

// cutQuoted takes the quoted field off the start of b.
func cutQuoted(b []byte) (field, rest []byte, ok bool) {
	doubled := false
	for i := 1; i < len(b); i++ {
		if b[i] != '"' {
			continue
		}
		if i+1 < len(b) && b[i+1] == '"' {
			doubled = true
			i++
			continue
		}
		field = b[1:i]
		if doubled {
			field = bytes.ReplaceAll(field, []byte(`""`), []byte(`"`))
		}
		return field, b[i+1:], true
	}
	return nil, nil, false
}

// quote shows the beginning of a piece of a file in a message.
func quote(b []byte) string {
	const most = 60
	if len(b) > most {
		b = b[:most]
		for len(b) > most-4 && !utf8.Valid(b) {
			b = b[:len(b)-1]
		}
		return strconv.Quote(string(b) + "…")
	}
	return strconv.Quote(string(b))
}
