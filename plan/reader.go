package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-sdn/weft/internal/document"
)

// reader decodes values into a plan.
type reader struct {
	plan     *Plan
	mistakes []document.Mistake
}

func (r *reader) fail(line int, format string, args ...any) {
	r.mistakes = append(r.mistakes, document.Mistake{Line: line, Text: document.Wording(format, args...)})
}

// refuse reports an invalid value of a key and suppresses later reports about
// it.
func (r *reader) refuse(path string, line int, format string, args ...any) {
	r.plan.unread[path] = true
	r.fail(line, format, args...)
}

// field is a permitted key of a mapping.
type field struct {
	key  string
	read func(path string, v document.Value)
}

// keys reads a mapping with fixed keys. It skips keys without a value.
func (r *reader) keys(path string, v document.Value, fields ...field) {
	var known []string
	for _, f := range fields {
		known = append(known, f.key)
	}
	switch v.Kind {
	case document.Mapping:
	case document.Broken:
		r.plan.unread[path] = true
		return
	case document.Null:
		why := "%swant keys with values, not %s; allowed: %s"
		if path == "" {
			why = "%swant keys with values, such as workers: {all: {services: [southbound, forwarding]}}, not %s; allowed: %s"
		}
		r.refuse(path, v.Line, why, colon(path), v.Kind, strings.Join(known, ", "))
		return
	default:
		r.refuse(path, v.Line, "%swant keys with values, not %s; allowed: %s", colon(path), v.Kind, strings.Join(known, ", "))
		return
	}
	for _, e := range v.Entries {
		name := join(path, e.Key)
		i := slices.Index(known, e.Key)
		if i < 0 {
			r.fail(e.Line, "unknown key %s; allowed: %s%s", name, strings.Join(known, ", "), document.Meant(e.Key, known))
			continue
		}
		r.plan.lines[name] = e.Line
		switch e.Value.Kind {
		case document.Null:
			if name == "workers" { // a plan has some
				r.refuse(name, e.Line, "workers: there are none; add one, such as all: {services: [southbound, forwarding]}")
				continue
			}
			r.refuse(name, e.Line, "%s: no value; give one, or take the key out", name)
		case document.Broken:
			r.plan.unread[name] = true
		default:
			fields[i].read(name, e.Value)
		}
	}
}

// named reads a mapping whose keys are names chosen in the plan.
func (r *reader) named(path string, v document.Value, what string, read func(name, path string, v document.Value)) {
	if v.Kind != document.Mapping {
		r.refuse(path, v.Line, "%s: want %s, not %s", path, what, v.Kind)
		return
	}
	for _, e := range v.Entries {
		r.plan.lines[join(path, e.Key)] = e.Line
		read(e.Key, join(path, e.Key), e.Value)
	}
}

func (r *reader) text(to *string) func(string, document.Value) {
	return func(path string, v document.Value) {
		if v.Kind != document.Word && v.Kind != document.Plain {
			r.refuse(path, v.Line, "%s: want text, not %s", path, v.Kind)
			return
		}
		*to = v.Text
	}
}

// choice reads one of several words.
func (r *reader) choice(to *string, allowed []string) func(string, document.Value) {
	return func(path string, v document.Value) {
		if (v.Kind != document.Word && v.Kind != document.Plain) || !slices.Contains(allowed, v.Text) {
			r.refuse(path, v.Line, "%s: want one of %s, not %s%s", path, strings.Join(allowed, ", "), v.Short(), document.Meant(v.Text, allowed))
			return
		}
		*to = v.Text
	}
}

func (r *reader) number(to *int) func(string, document.Value) {
	return func(path string, v document.Value) {
		n, err := strconv.Atoi(v.Text)
		if v.Kind != document.Plain || err != nil {
			r.refuse(path, v.Line, "%s: want a whole number, not %s", path, v.Short())
			return
		}
		*to = n
	}
}

// flag reads true or false.
func (r *reader) flag(to *bool) func(string, document.Value) {
	return func(path string, v document.Value) {
		b, err := strconv.ParseBool(v.Text)
		if v.Kind != document.Plain || err != nil {
			r.refuse(path, v.Line, "%s: want true or false, not %s", path, v.Short())
			return
		}
		*to = b
	}
}

// texts reads a list of texts; each item gets the path path.text.
func (r *reader) texts(to *[]string, what string) func(string, document.Value) {
	return func(path string, v document.Value) {
		if v.Kind != document.List {
			r.refuse(path, v.Line, "%s: want a list of %s, such as [discovery, hosts], not %s", path, what, v.Short())
			return
		}
		there := map[string]bool{}
		for _, item := range v.Items {
			switch {
			case item.Kind == document.Broken:
				r.plan.unread[path] = true
			case item.Kind != document.Word:
				r.refuse(path, item.Line, "%s: want the name of a service, not %s", path, item.Short())
			case there[item.Text]:
				r.fail(item.Line, "%s: %s is listed twice; list it once", path, item.Text)
			default:
				there[item.Text] = true
				r.plan.lines[join(path, item.Text)] = item.Line
				*to = append(*to, item.Text)
			}
		}
	}
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func colon(path string) string {
	if path == "" {
		return ""
	}
	return path + ": "
}

// limits bound texts from outside.
func limits(what string) document.Limits {
	return document.Limits{What: what, Octets: 256 << 10, Lines: 10_000}
}

// report turns mistakes into an error, sorted by line.
func (p *Plan) report(mistakes []document.Mistake) error {
	slices.SortStableFunc(mistakes, func(a, b document.Mistake) int { return cmp.Compare(a.Line, b.Line) })
	var errs []error
	mistakes = slices.Compact(mistakes)
	if more := len(mistakes) - maxMistakes; more > 0 {
		mistakes = append(mistakes[:maxMistakes:maxMistakes], document.Mistake{Line: mistakes[maxMistakes].Line, Text: fmt.Sprintf("and %d more mistakes from here on", more)})
	}
	for _, m := range mistakes {
		switch {
		case m.Line > 0:
			errs = append(errs, fmt.Errorf("%s:%d: %s", p.source, m.Line, m.Text))
		case p.source != "":
			errs = append(errs, fmt.Errorf("%s: %s", p.source, m.Text))
		default:
			errs = append(errs, errors.New(m.Text))
		}
	}
	return errors.Join(errs...)
}

// maxMistakes is the most mistakes that Parse reports; nobody reads more.
const maxMistakes = 100
