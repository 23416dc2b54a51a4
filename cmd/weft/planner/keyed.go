package planner

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/internal/document"
)

// keyed reads a file of keys with values, and collects what is wrong with it.
type keyed struct {
	source   string
	mistakes []document.Mistake
}

// key is a permitted key of a mapping, and what reads its value.
type key struct {
	name string
	read func(path string, v document.Value)
}

// readKeyed reads a file: YAML or JSON with these keys. All mistakes are
// reported, each on a line of its own as FILE:LINE.
func readKeyed(file, what string, keys func(*keyed) []key, then func(*keyed)) error {
	text, err := document.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read the %s: %w", what, err)
	}
	r := &keyed{source: file}
	v, mistakes, ok := document.Read(text, cli.FileLimits(what))
	if r.mistakes = mistakes; ok {
		if r.keys("", v, keys(r)...); len(r.mistakes) == 0 {
			then(r)
		}
	}
	slices.SortStableFunc(r.mistakes, func(a, b document.Mistake) int { return cmp.Compare(a.Line, b.Line) })
	const most = 20
	var errs []error
	for i, m := range r.mistakes {
		if i == most {
			errs = append(errs, fmt.Errorf("%s: and %d more mistakes", file, len(r.mistakes)-most))
			break
		}
		errs = append(errs, m.In(file))
	}
	return errors.Join(errs...)
}

func (r *keyed) fail(line int, format string, args ...any) {
	r.mistakes = append(r.mistakes, document.Mistake{Line: line, Text: document.Wording(format, args...)})
}

// keys reads a mapping with fixed keys.
func (r *keyed) keys(path string, v document.Value, list ...key) {
	var known []string
	for _, k := range list {
		known = append(known, k.name)
	}
	at := ""
	if path != "" {
		at = path + ": "
	}
	if v.Kind == document.Broken {
		return
	}
	if v.Kind != document.Mapping {
		r.fail(v.Line, "%swant keys with values, not %s; allowed: %s", at, v.Kind, strings.Join(known, ", "))
		return
	}
	for _, e := range v.Entries {
		i := slices.Index(known, e.Key)
		name := strings.TrimPrefix(path+"."+e.Key, ".")
		switch {
		case i < 0:
			r.fail(e.Line, "%sunknown key %s; allowed: %s%s", at, e.Key, strings.Join(known, ", "), document.Meant(e.Key, known))
		case e.Value.Kind == document.Null:
			r.fail(e.Line, "%s: no value; give one, or take the key out", name)
		case e.Value.Kind != document.Broken:
			list[i].read(name, e.Value)
		}
	}
}

// named reads a mapping whose keys are names that the file gives.
func (r *keyed) named(path string, v document.Value, what string, read func(name, path string, v document.Value)) {
	if v.Kind != document.Mapping {
		r.fail(v.Line, "%s: want %s, not %s", path, what, v.Kind)
		return
	}
	for _, e := range v.Entries {
		read(e.Key, path+"."+e.Key, e.Value)
	}
}

// number reads a number within bounds.
func (r *keyed) number(to *float64, least, most float64) func(string, document.Value) {
	return func(path string, v document.Value) {
		n, err := strconv.ParseFloat(v.Text, 64)
		if v.Kind != document.Plain || err != nil || math.IsNaN(n) || n < least || n > most {
			r.fail(v.Line, "%s: want a number from %g to %g, not %s", path, least, most, v.Short())
			return
		}
		*to = n
	}
}

// whole reads a whole number within bounds.
func (r *keyed) whole(to *int64, least, most int64) func(string, document.Value) {
	return func(path string, v document.Value) {
		n, err := strconv.ParseInt(v.Text, 10, 64)
		if v.Kind != document.Plain || err != nil || n < least || n > most {
			r.fail(v.Line, "%s: want a whole number from %d to %d, not %s", path, least, most, v.Short())
			return
		}
		*to = n
	}
}

// span reads a time as seconds.
func (r *keyed) span(to *float64) func(string, document.Value) {
	return func(path string, v document.Value) {
		d, err := time.ParseDuration(v.Text)
		if err != nil || d < 0 || d > time.Hour {
			r.fail(v.Line, "%s: want a time up to 1h, such as 0.2ms, not %s", path, v.Short())
			return
		}
		*to = d.Seconds()
	}
}

// word reads a text.
func (r *keyed) word(to *string) func(string, document.Value) {
	return func(path string, v document.Value) {
		if !v.Scalar() {
			r.fail(v.Line, "%s: want text, not %s", path, v.Kind)
			return
		}
		*to = v.Text
	}
}

// index returns the place of a name in a list, and reports one that is not there.
func (r *keyed) index(path string, v document.Value, known []string) (int, bool) {
	i := slices.Index(known, v.Text)
	if !v.Scalar() || i < 0 {
		r.fail(v.Line, "%s: there is no %s; there are %s%s", path, v.Short(), firstOf(known), document.Meant(v.Text, known))
		return 0, false
	}
	return i, true
}

// firstOf lists the first names of many.
func firstOf(names []string) string {
	const most = 12
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}
