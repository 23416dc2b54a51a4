package plan

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"weft/flow"
)

// Parse reads a plan from YAML; source, the name of the file, is for messages
// and for the plan's name if it has none. All mistakes that can be found
// without knowing the services are reported, each on a line of its own as
// FILE:LINE: what is wrong and what is allowed.
func Parse(source string, text []byte) (*Plan, error) {
	r := &reader{plan: &Plan{source: source, lines: map[string]int{}, unread: map[string]bool{}}}
	v, mistakes, ok := document(text)
	r.mistakes = mistakes
	if ok {
		r.read(v)
	}
	p := r.plan
	if ok {
		p.defaults()
		r.mistakes = append(r.mistakes, p.invalid()...)
	}
	if err := p.report(r.mistakes); err != nil {
		return nil, err
	}
	p.unread = nil
	return p, nil
}

// maxMistakes is how many mistakes are told; nobody reads more.
const maxMistakes = 100

// report turns mistakes into an error, sorted by line.
func (p *Plan) report(mistakes []mistake) error {
	slices.SortStableFunc(mistakes, func(a, b mistake) int { return cmp.Compare(a.line, b.line) })
	var errs []error
	mistakes = slices.Compact(mistakes)
	if more := len(mistakes) - maxMistakes; more > 0 {
		mistakes = append(mistakes[:maxMistakes:maxMistakes], mistake{mistakes[maxMistakes].line, fmt.Sprintf("and %d more mistakes from here on", more)})
	}
	for _, m := range mistakes {
		switch {
		case m.line > 0:
			errs = append(errs, fmt.Errorf("%s:%d: %s", p.source, m.line, m.text))
		case p.source != "":
			errs = append(errs, fmt.Errorf("%s: %s", p.source, m.text))
		default:
			errs = append(errs, errors.New(m.text))
		}
	}
	return errors.Join(errs...)
}

// defaults fills in what the text leaves out.
func (p *Plan) defaults() {
	if p.Name == "" {
		base := filepath.Base(p.source)
		p.Name = strings.Trim(notName.ReplaceAllString(strings.TrimSuffix(base, filepath.Ext(base)), "-"), "-._")
		p.Name = p.Name[:min(len(p.Name), maxName)]
	}
	p.Name = cmp.Or(p.Name, "plan")
	p.Transport = cmp.Or(p.Transport, defaultTransport)
	p.Events = cmp.Or(p.Events, defaultEvents)
	p.Balance = cmp.Or(p.Balance, defaultBalance)
	if _, set := p.lines["bus.replicas"]; !set || p.unread["bus.replicas"] {
		p.Bus.Replicas = 1
	}
	for i := range p.Workers {
		w := &p.Workers[i]
		path := "workers." + w.Name + ".replicas"
		if _, set := p.lines[path]; !set || p.unread[path] {
			w.Replicas = 1
		}
		w.Balance = cmp.Or(w.Balance, p.Balance)
		w.Listen = cmp.Or(w.Listen, defaultListen)
	}
	for i := range p.Apps {
		a := &p.Apps[i]
		a.Absent, a.Timeout = cmp.Or(a.Absent, AbsentHold), cmp.Or(a.Timeout, defaultAppTimeout)
	}
}

// reader turns values into a plan.
type reader struct {
	plan     *Plan
	mistakes []mistake
}

func (r *reader) fail(line int, format string, args ...any) {
	r.mistakes = append(r.mistakes, mistake{line, fmt.Sprintf(format, args...)})
}

// refuse reports that a key's value is not what it must be; nothing else will be
// said of it.
func (r *reader) refuse(path string, line int, format string, args ...any) {
	r.plan.unread[path] = true
	r.fail(line, format, args...)
}

// field is a key that a mapping may have.
type field struct {
	key  string
	read func(path string, v value)
}

// keys reads a mapping with fixed keys. A key without a value is left out.
func (r *reader) keys(path string, v value, fields ...field) {
	var known []string
	for _, f := range fields {
		known = append(known, f.key)
	}
	switch v.kind {
	case mapping:
	case broken:
		r.plan.unread[path] = true
		return
	default:
		r.refuse(path, v.line, "%swant keys with values, not %s; allowed: %s", colon(path), v.kind, strings.Join(known, ", "))
		return
	}
	for _, e := range v.entries {
		name := join(path, e.key)
		i := slices.Index(known, e.key)
		if i < 0 {
			r.fail(e.line, "unknown key %s; allowed: %s", name, strings.Join(known, ", "))
			continue
		}
		r.plan.lines[name] = e.line
		switch e.value.kind {
		case null:
			r.refuse(name, e.line, "%s: no value; give one, or take the key out", name)
		case broken:
			r.plan.unread[name] = true
		default:
			fields[i].read(name, e.value)
		}
	}
}

// named reads a mapping whose keys are names that the plan gives.
func (r *reader) named(path string, v value, what string, read func(name, path string, v value)) {
	if v.kind != mapping {
		r.refuse(path, v.line, "%s: want %s, not %s", path, what, v.kind)
		return
	}
	for _, e := range v.entries {
		r.plan.lines[join(path, e.key)] = e.line
		read(e.key, join(path, e.key), e.value)
	}
}

func (r *reader) text(to *string) func(string, value) {
	return func(path string, v value) {
		if v.kind != word && v.kind != plain {
			r.refuse(path, v.line, "%s: want text, not %s", path, v.kind)
			return
		}
		*to = v.text
	}
}

// choice reads one of a few words.
func (r *reader) choice(to *string, allowed []string) func(string, value) {
	return func(path string, v value) {
		if (v.kind != word && v.kind != plain) || !slices.Contains(allowed, v.text) {
			r.refuse(path, v.line, "%s: want one of %s, not %s", path, strings.Join(allowed, ", "), v.short())
			return
		}
		*to = v.text
	}
}

func (r *reader) number(to *int) func(string, value) {
	return func(path string, v value) {
		n, err := strconv.Atoi(v.text)
		if v.kind != plain || err != nil {
			r.refuse(path, v.line, "%s: want a whole number, not %s", path, v.short())
			return
		}
		*to = n
	}
}

// flag reads true or false.
func (r *reader) flag(to *bool) func(string, value) {
	return func(path string, v value) {
		b, err := strconv.ParseBool(v.text)
		if v.kind != plain || err != nil {
			r.refuse(path, v.line, "%s: want true or false, not %s", path, v.short())
			return
		}
		*to = b
	}
}

// texts reads a list of texts; an item is known as path.text afterwards.
func (r *reader) texts(to *[]string, what string) func(string, value) {
	return func(path string, v value) {
		if v.kind != list {
			r.refuse(path, v.line, "%s: want a list of %s, such as [discovery, hosts], not %s", path, what, v.short())
			return
		}
		there := map[string]bool{}
		for _, item := range v.items {
			switch {
			case item.kind == broken:
				r.plan.unread[path] = true
			case item.kind != word:
				r.refuse(path, item.line, "%s: want the name of a service, not %s", path, item.short())
			case there[item.text]:
				r.fail(item.line, "%s: %s is listed twice; list it once", path, item.text)
			default:
				there[item.text] = true
				r.plan.lines[join(path, item.text)] = item.line
				*to = append(*to, item.text)
			}
		}
	}
}

// sections reads the settings of services.
func (r *reader) sections(to *[]Section) func(string, value) {
	return func(path string, v value) {
		r.named(path, v, "a section for each service", func(name, path string, v value) {
			if s := r.section(path, name, v); s != nil {
				*to = append(*to, *s)
			}
		})
		slices.SortFunc(*to, func(a, b Section) int { return cmp.Compare(a.Service, b.Service) })
	}
}

// read reads the whole plan.
func (r *reader) read(v value) {
	p := r.plan
	r.keys("", v,
		field{"name", r.text(&p.Name)},
		field{"transport", r.choice(&p.Transport, Transports())},
		field{"events", r.choice(&p.Events, Transports())},
		field{"balance", r.choice(&p.Balance, Balances())},
		field{"pipeline", r.texts(&p.Pipeline, "stages")},
		field{"partial", r.flag(&p.Partial)},
		field{"bus", func(path string, v value) {
			r.keys(path, v,
				field{"url", r.text(&p.Bus.URL)},
				field{"credentials", r.text(&p.Bus.Credentials)},
				field{"replicas", r.number(&p.Bus.Replicas)})
		}},
		field{"partitions", func(path string, v value) {
			r.named(path, v, "a name for each partition with its switches below", r.partition)
		}},
		field{"workers", func(path string, v value) {
			r.named(path, v, "a name for each worker with its services below", r.worker)
		}},
		field{"apps", func(path string, v value) {
			r.named(path, v, "a name for each app", r.app)
			slices.SortStableFunc(p.Apps, func(a, b App) int { return cmp.Compare(a.Name, b.Name) })
		}},
		field{"links", r.links},
		field{"config", r.sections(&p.Config)},
	)
}

func (r *reader) partition(name, path string, v value) {
	x := Partition{Name: name}
	var switches flow.SwitchList
	r.keys(path, v, field{"switches", func(path string, v value) {
		if v.kind != list {
			r.refuse(path, v.line, "%s: want a list of switches, such as [1-8, 0000000000000010] or [rest], not %s", path, v.short())
			return
		}
		for _, item := range v.items {
			switch item.kind {
			case broken:
				r.plan.unread[path] = true
			case word, plain:
				if err := switches.Add(item.text); err != nil {
					r.refuse(path, item.line, "%s: %v", path, err)
				} else if item.text != flow.Rest {
					r.plan.lines[join(path, switches.Ranges[len(switches.Ranges)-1].String())] = item.line
				}
			default:
				r.refuse(path, item.line, "%s: want a switch, a range of switches, or rest, not %s", path, item.kind)
			}
		}
	}})
	x.Switches, x.Rest = switches.Ranges, switches.Rest
	slices.SortStableFunc(x.Switches, func(a, b flow.DPIDRange) int { return cmp.Compare(a.First, b.First) })
	r.plan.Partitions = append(r.plan.Partitions, x)
}

func (r *reader) worker(name, path string, v value) {
	w := Worker{Name: name}
	r.keys(path, v,
		field{"services", r.texts(&w.Services, "services")},
		field{"replicas", r.number(&w.Replicas)},
		field{"standby", r.number(&w.Standby)},
		field{"balance", r.choice(&w.Balance, Balances())},
		field{"partition", r.text(&w.Partition)},
		field{"class", r.choice(&w.Class, classes())},
		field{"nice", r.number(&w.Nice)},
		field{"cpus", r.text(&w.CPUs)},
		field{"memory", func(path string, v value) {
			b, err := ParseBytes(v.text)
			if err != nil {
				r.fail(v.line, "%s: want an amount of memory, such as 512MiB or 2GiB, not %s", path, v.short())
			}
			w.Memory = b
		}},
		field{"listen", r.text(&w.Listen)},
		field{"env", func(path string, v value) {
			w.Env = map[string]string{}
			r.named(path, v, "names of variables with their values", func(name, path string, v value) {
				var s string
				r.text(&s)(path, v)
				w.Env[name] = s
			})
			if len(w.Env) == 0 {
				w.Env = nil
			}
		}},
		field{"machine", r.text(&w.Machine)},
		field{"settings", r.sections(&w.Settings)},
	)
	r.plan.Workers = append(r.plan.Workers, w)
}

func (r *reader) links(path string, v value) {
	if v.kind != list {
		r.fail(v.line, "%s: want a list, such as [{from: southbound, to: routing, transport: ws}], not %s", path, v.short())
		return
	}
	for i, item := range v.items {
		var l Link
		path := fmt.Sprintf("links[%d]", i)
		r.plan.lines[path] = item.line
		r.keys(path, item,
			field{"from", r.text(&l.From)},
			field{"to", r.text(&l.To)},
			field{"transport", r.choice(&l.Transport, Transports())})
		r.plan.Links = append(r.plan.Links, l)
	}
}

// short describes a value in a message.
func (v value) short() string {
	if v.kind == word || v.kind == plain {
		return strconv.Quote(v.text)
	}
	return v.kind.String()
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
