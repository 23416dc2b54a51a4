package topology

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/weft-sdn/weft/internal/document"
)

// mostItems is how many values a lab file may have: several of each of some ten
// thousand nodes and links.
const mostItems = 1_000_000

// limits are those of lab files.
func limits() document.Limits {
	return document.Limits{What: "lab file", Octets: 16 << 20, Lines: 1_000_000, Items: mostItems, Aliases: 100_000}
}

// Load reads a lab file, completes and checks it. What is wrong with it comes
// back as Problems, each with file and line. It needs neither root nor tools.
func Load(path string) (*Topology, error) {
	b, err := document.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read lab file: %w", err)
	}
	return Parse(path, b)
}

// Parse is Load for text at hand; file names it in messages, and gives the
// lab its name if the text does not.
func Parse(file string, text []byte) (*Topology, error) {
	return parse(file, text, Bounds{}, Running{})
}

// Bounds limit lab files of others: what a file may have at most. Zero stands for
// what any lab file may have.
type Bounds struct {
	Items int // values
	Nodes int // switches and hosts
	Links int // between switches
}

// ParseBounded is Parse for a file that must be within bounds.
func ParseBounded(file string, text []byte, b Bounds) (*Topology, error) {
	return parse(file, text, b, Running{})
}

// check says which bound a topology exceeds.
func (b Bounds) check(t *Topology) error {
	for _, bound := range []struct {
		is, most int
		what     string
	}{{len(t.Switches) + len(t.Hosts), b.Nodes, "switches and hosts"}, {len(t.Links), b.Links, "links"}} {
		if bound.most > 0 && bound.is > bound.most {
			return Problems{{File: t.file, Line: t.line, What: fmt.Sprintf("the file has %d %s", bound.is, bound.what), Allowed: fmt.Sprintf("at most %d here", bound.most)}}
		}
	}
	return nil
}

// ParseChanged is Parse for the changed file of a lab that is up: what is in both keeps its
// numbers and addresses, unless the text gives it others.
func ParseChanged(file string, text []byte, was Running) (*Topology, error) {
	return parse(file, text, Bounds{}, was)
}

func parse(file string, text []byte, b Bounds, running Running) (*Topology, error) {
	r := &reader{file: file}
	limits := limits()
	limits.Items = cmp.Or(b.Items, limits.Items)
	docs, mistakes, ok := document.ReadAll(text, limits)
	for _, m := range mistakes {
		r.problems = append(r.problems, Problem{File: file, Line: m.Line, What: m.Text})
	}
	switch {
	case !ok:
		return nil, r.problems
	case len(docs) > 1:
		return nil, Problems{{File: file, Line: docs[1].Line, What: "a second YAML document: a lab file holds one"}}
	case len(docs) == 0 || docs[0].Kind == document.Null:
		return nil, Problems{{File: file, Line: 1, What: "the file is empty", Allowed: topologyKeys}}
	}
	if len(mistakes) == 0 && isT3D(docs[0]) {
		t, err := parseT3D(file, docs[0])
		if err == nil {
			err = b.check(t)
		}
		return t, err
	}
	t := &Topology{file: file, line: docs[0].Line, text: text}
	if err := r.read(docs[0], t, b, running); err != nil {
		return nil, err
	}
	return t, nil
}

// read fills t with what a lab file says, completes and checks it. If the reader has
// mistakes of the text already, it looks for those of the values only.
func (r *reader) read(v document.Value, t *Topology, b Bounds, running Running) error {
	malformed := len(r.problems) > 0
	r.topology(v, t)
	if err := b.check(t); err != nil {
		return err
	}
	if running.Topology != nil {
		t.keep(running)
	}
	if t.Name == "" {
		t.Name = LabName(strings.TrimSuffix(filepath.Base(r.file), filepath.Ext(r.file)))
	}
	t.Complete()
	unread := map[int]bool{}
	for _, p := range r.problems {
		unread[p.Line] = true
	}
	if more := (Problems{}); !malformed && !r.problems.enough() && errors.As(Check(t), &more) {
		for _, p := range more {
			if !unread[p.Line] { // else it may be due to what was not read there
				r.problems = append(r.problems, p)
			}
		}
	}
	if err := r.problems.err(); err != nil {
		return r.problems.first()
	}
	return nil
}

const topologyKeys = "name, controller, switches, hosts, links, routing, control, ovs, names"

// reader turns values into a Topology and collects what is wrong.
type reader struct {
	file     string
	problems Problems
}

func (r *reader) add(line int, allowed, format string, args ...any) {
	if r.problems.enough() {
		return
	}
	r.problems = append(r.problems, Problem{
		File: r.file, Line: line, What: document.Wording(format, args...), Allowed: allowed,
	})
}

// field is one key a mapping may have and what reads its value.
type field struct {
	key  string
	read func(document.Value)
}

// forOthers is how keys begin that other tools keep for themselves, such as x-position of
// Loom: a lab leaves them alone, wherever they stand.
const forOthers = "x-"

// mapping reads v, which must be a mapping with no keys but those of fields, and those
// of other tools.
func (r *reader) mapping(v document.Value, what string, fields []field) {
	keys := make([]string, len(fields))
	for i, f := range fields {
		keys[i] = f.key
	}
	allowed := strings.Join(keys, ", ")
	switch v.Kind {
	case document.Broken: // already reported
		return
	case document.Mapping:
	default:
		r.add(v.Line, allowed, "%s is %s, not a mapping of keys to values", what, kind(v))
		return
	}
next:
	for _, e := range v.Entries {
		for _, f := range fields {
			if f.key == e.Key {
				f.read(e.Value)
				continue next
			}
		}
		if strings.HasPrefix(e.Key, forOthers) || r.problems.enough() {
			continue
		}
		r.add(e.Line, allowed+document.Meant(e.Key, keys), "unknown key %q in %s", e.Key, what)
	}
}

// kind says in words what a value is.
func kind(v document.Value) string {
	switch v.Kind {
	case document.Null:
		return "empty"
	case document.Mapping:
		return "a mapping"
	case document.List:
		return "a list"
	case document.Plain:
		if strings.EqualFold(v.Text, "true") || strings.EqualFold(v.Text, "false") {
			return "a truth value"
		}
		return "a number"
	}
	return "a text"
}

// list reads every element of a value, which must be a list.
func (r *reader) list(what string, read func(document.Value)) func(document.Value) {
	return func(v document.Value) {
		switch v.Kind {
		case document.List:
			for _, e := range v.Items {
				read(e)
			}
		case document.Null, document.Broken:
		default:
			r.add(v.Line, "", "%s is %s: write a list", what, kind(v))
		}
	}
}

// scalar reads a value, which must be a single one, by its text.
func (r *reader) scalar(key string, set func(string) error) func(document.Value) {
	return func(v document.Value) {
		switch v.Kind {
		case document.Plain, document.Word:
			if err := set(v.Text); err != nil {
				r.add(v.Line, "", "%s: %v", key, err)
			}
		case document.Broken:
		default:
			r.add(v.Line, "", "%s is %s: write a single value", key, kind(v))
		}
	}
}

func (r *reader) text(key string, to *string) field {
	return field{key, r.scalar(key, func(s string) error { *to = s; return nil })}
}

func (r *reader) truth(key string, to *bool) field {
	return field{key, r.scalar(key, func(s string) error {
		if s != "true" && s != "false" {
			return fmt.Errorf("%q is not allowed; allowed: true, false", s)
		}
		*to = s == "true"
		return nil
	})}
}

func (r *reader) number(key string, least, most uint64, set func(uint64)) field {
	return field{key, r.scalar(key, func(s string) error {
		v, err := strconv.ParseUint(s, 10, 64)
		if err != nil || v < least || v > most {
			return fmt.Errorf("%q is not allowed; allowed: a number from %d to %d", s, least, most)
		}
		set(v)
		return nil
	})}
}

func (r *reader) topology(v document.Value, t *Topology) {
	r.mapping(v, "the lab", []field{
		r.text("name", &t.Name),
		{"controller", func(v document.Value) {
			one := r.scalar("controller", func(s string) error {
				t.Controllers = append(t.Controllers, s)
				if err := CheckController(s); err != nil {
					return fmt.Errorf("%w; allowed: %s", err, ControllerForms)
				}
				return nil
			})
			if v.Kind == document.List {
				r.list("controller", one)(v)
				return
			}
			one(v)
		}},
		{"switches", r.list("switches", func(v document.Value) { t.Switches = append(t.Switches, r.oneSwitch(v)) })},
		{"hosts", r.list("hosts", func(v document.Value) { t.Hosts = append(t.Hosts, r.host(v)) })},
		{"links", r.list("links", func(v document.Value) { t.Links = append(t.Links, r.link(v)) })},
		{"routing", func(v document.Value) { r.routing(v, &t.Routing) }},
		{"control", func(v document.Value) {
			r.mapping(v, "control", []field{r.text("mode", &t.Control.Mode), r.text("at", &t.Control.At)})
		}},
		r.text("ovs", &t.OVS),
		{"names", r.list("names", func(v document.Value) { t.Names = append(t.Names, r.name(v)) })},
	})
}

func (r *reader) routing(v document.Value, to *Routing) {
	r.mapping(v, "routing", []field{
		{"hello", r.scalar("hello", func(v string) error { return to.Hello.UnmarshalText([]byte(v)) })},
		{"dead", r.scalar("dead", func(v string) error { return to.Dead.UnmarshalText([]byte(v)) })},
		{"bfd", r.scalar("bfd", func(v string) (err error) {
			switch v {
			case "true":
				to.BFD = defaultBFD
			case "false", "none":
				to.BFD = 0
			default:
				if to.BFD, err = ParseDelay(v); err != nil {
					return fmt.Errorf("%q is not allowed; allowed: a time such as 50ms, true, none", v)
				}
			}
			return nil
		})},
		r.truth("ipv4_only", &to.IPv4Only),
	})
}

func (r *reader) oneSwitch(v document.Value) Switch {
	s := Switch{line: v.Line}
	r.mapping(v, "a switch", []field{
		r.text("name", &s.Name),
		{"dpid", r.scalar("dpid", func(v string) (err error) { s.DPID, err = ParseDPID(v); return err })},
		{"protocols", r.list("protocols", r.scalar("protocols", func(v string) error { s.Protocols = append(s.Protocols, v); return nil }))},
		r.text("fail_mode", &s.FailMode),
		{"kind", r.scalar("kind", func(v string) error { s.Kind = Kind(v); return nil })},
		{"loopback", r.scalar("loopback", func(v string) (err error) { s.Loopback, err = parseAddr(v, "10.255.0.1"); return err })},
		{"loopback6", r.scalar("loopback6", func(v string) (err error) { s.Loopback6, err = parseAddr(v, "fd00:ff::1"); return err })},
	})
	return s
}

func (r *reader) shape(s *Shape) []field {
	return []field{
		{"rate", r.scalar("rate", func(v string) (err error) { s.Rate, err = ParseRate(v); return err })},
		{"delay", r.scalar("delay", func(v string) (err error) { s.Delay, err = ParseDelay(v); return err })},
		{"jitter", r.scalar("jitter", func(v string) (err error) { s.Jitter, err = ParseDelay(v); return err })},
		{"loss", r.scalar("loss", func(v string) (err error) { s.Loss, err = ParsePercent(v); return err })},
		r.number("mtu", minMTU, MaxMTU, func(v uint64) { s.MTU = int(v) }),
	}
}

func (r *reader) host(v document.Value) Host {
	h := Host{line: v.Line}
	r.mapping(v, "a host", append([]field{
		r.text("name", &h.Name),
		r.text("switch", &h.Switch),
		r.number("port", 1, maxPort, func(v uint64) { h.Port = uint16(v) }),
		{"mac", r.scalar("mac", func(v string) error { return h.MAC.UnmarshalText([]byte(v)) })},
		{"ipv4", r.scalar("ipv4", func(v string) (err error) { h.IPv4, err = parsePrefix(v, NoIPv4(), "10.0.0.1/24"); return err })},
		{"ipv6", r.scalar("ipv6", func(v string) (err error) { h.IPv6, err = parsePrefix(v, NoIPv6(), "fd00::1/64"); return err })},
		{"gateway4", r.scalar("gateway4", func(v string) (err error) { h.GW4, err = netip.ParseAddr(v); return err })},
		{"gateway6", r.scalar("gateway6", func(v string) (err error) { h.GW6, err = netip.ParseAddr(v); return err })},
		r.number("vlan", 1, 4094, func(v uint64) { h.VLAN = uint16(v) }),
		r.truth("gateway", &h.Gateway),
		r.truth("manage", &h.Manage),
		{"eth1", func(v document.Value) {
			h.Eth1 = &Attachment{}
			r.mapping(v, "eth1", []field{
				r.text("switch", &h.Eth1.Switch),
				r.number("port", 1, maxPort, func(v uint64) { h.Eth1.Port = uint16(v) }),
			})
		}},
		{"cpus", r.list("cpus", func(v document.Value) {
			r.number("cpus", 0, MostCPU, func(v uint64) { h.CPUs = append(h.CPUs, int(v)) }).read(v)
		})},
		{"tunnel", func(v document.Value) { h.Tunnel = r.tunnel(v) }},
		{"run", r.list("run", func(v document.Value) { h.Run = append(h.Run, r.program(v)) })},
	}, r.shape(&h.Shape)...))
	return h
}

// program reads a command, alone or with what else there is to say of it.
func (r *reader) program(v document.Value) Program {
	p := Program{line: v.Line}
	if v.Kind != document.Mapping {
		r.scalar("run", func(s string) error { p.Command = s; return nil })(v)
		return p
	}
	r.mapping(v, "a program", []field{
		r.text("name", &p.Name),
		r.text("command", &p.Command),
		{"env", func(v document.Value) {
			if v.Kind != document.Mapping {
				r.add(v.Line, "", "env is %s, not a mapping of names to values", kind(v))
				return
			}
			p.Env = map[string]string{}
			for _, e := range v.Entries {
				r.scalar(e.Key, func(s string) error { p.Env[e.Key] = s; return nil })(e.Value)
			}
		}},
		{"restart", r.scalar("restart", func(s string) error { p.Restart = Restart(s); return nil })},
	})
	return p
}

func parseAddr(s, example string) (netip.Addr, error) {
	a, err := netip.ParseAddr(s)
	if err != nil || a.Zone() != "" {
		return a, fmt.Errorf("%q is not an address; allowed: such as %s", s, example)
	}
	return a, nil
}

func parsePrefix(s string, none netip.Prefix, example string) (netip.Prefix, error) {
	if s == "none" {
		return none, nil
	}
	p, err := netip.ParsePrefix(s)
	if err != nil || p.Addr().Is4() != none.Addr().Is4() {
		return p, fmt.Errorf("%q is not an address with its prefix length; allowed: such as %s, or none", s, example)
	}
	return p, nil
}

func (r *reader) link(v document.Value) Link {
	l := Link{line: v.Line}
	r.mapping(v, "a link", append([]field{
		r.text("a", &l.A),
		r.text("b", &l.B),
		r.number("a_port", 1, maxPort, func(v uint64) { l.APort = uint16(v) }),
		r.number("b_port", 1, maxPort, func(v uint64) { l.BPort = uint16(v) }),
		{"tunnel", func(v document.Value) { l.Tunnel = r.tunnel(v) }},
	}, r.shape(&l.Shape)...))
	return l
}

func (r *reader) tunnel(v document.Value) *Tunnel {
	t := &Tunnel{}
	r.mapping(v, "a tunnel", []field{
		{"remote", r.scalar("remote", func(v string) (err error) { t.Remote, err = parseAddr(v, "192.0.2.2"); return err })},
		{"local", r.scalar("local", func(v string) (err error) { t.Local, err = parseAddr(v, "192.0.2.1"); return err })},
		r.number("vni", 1, mostVNI, func(v uint64) { t.VNI = uint32(v) }),
		r.number("port", 1, 65535, func(v uint64) { t.Port = uint16(v) }),
	})
	return t
}

func (r *reader) name(v document.Value) (n Name) {
	r.mapping(v, "a name", []field{
		{"name", r.scalar("name", func(s string) error {
			if n.Name = s; !nodeName.MatchString(s) {
				return fmt.Errorf("%q is not a name; allowed: %s", s, nameRule)
			}
			return nil
		})},
		{"addresses", r.list("addresses", r.scalar("addresses", func(s string) error {
			a, err := parseAddr(s, "10.0.0.1")
			n.Addresses = append(n.Addresses, a)
			return err
		}))},
	})
	return n
}
