package lab

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Load reads a lab file, completes and checks it. What is wrong with it comes
// back as Problems, each with file and line. It needs neither root nor tools.
func Load(path string) (*Topology, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read lab file: %w", err)
	}
	return Parse(path, b)
}

// Parse is Load for text at hand; file names it in messages, and gives the
// lab its name if the text does not.
func Parse(file string, text []byte) (*Topology, error) {
	r := &reader{file: file, anchors: map[string]ast.Node{}}
	parsed, err := parser.ParseBytes(text, 0)
	if err != nil {
		p := Problem{File: file, What: err.Error()}
		var yerr yaml.Error
		if errors.As(err, &yerr) {
			p.What = "not YAML: " + yerr.GetMessage()
			if tk := yerr.GetToken(); tk != nil {
				p.Line = tk.Position.Line
			}
		}
		return nil, Problems{p}
	}
	t := &Topology{file: file, line: 1}
	switch {
	case len(parsed.Docs) == 0 || parsed.Docs[0].Body == nil || parsed.Docs[0].Body.Type() == ast.NullType:
		return nil, Problems{{File: file, Line: 1, What: "the file is empty", Allowed: topologyKeys}}
	case len(parsed.Docs) > 1:
		return nil, Problems{{File: file, Line: line(parsed.Docs[1].Body), What: "a second YAML document: a lab file holds one"}}
	}
	for _, d := range parsed.Docs {
		ast.Walk(r, d.Body)
	}
	r.topology(parsed.Docs[0].Body, t)
	if err := r.problems.err(); err != nil {
		return nil, err
	}
	if t.Name == "" {
		t.Name = nameFrom(strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)))
	}
	t.Complete()
	if err := Check(t); err != nil {
		return nil, err
	}
	return t, nil
}

const topologyKeys = "name, controller, switches, hosts, links"

// reader turns YAML nodes into a Topology and collects what is wrong.
type reader struct {
	file     string
	problems Problems
	anchors  map[string]ast.Node
}

// Visit collects anchors, so that aliases can be followed.
func (r *reader) Visit(n ast.Node) ast.Visitor {
	if a, ok := n.(*ast.AnchorNode); ok {
		r.anchors[a.Name.GetToken().Value] = a.Value
	}
	return r
}

func line(n ast.Node) int {
	if n == nil || n.GetToken() == nil {
		return 0
	}
	return n.GetToken().Position.Line
}

func (r *reader) add(n ast.Node, allowed, format string, args ...any) {
	r.problems = append(r.problems, Problem{
		File: r.file, Line: line(n), What: fmt.Sprintf(format, args...), Allowed: allowed,
	})
}

// plain follows anchors, aliases and tags to the value they stand for.
func (r *reader) plain(n ast.Node) ast.Node {
	for range 32 {
		switch v := n.(type) {
		case *ast.AnchorNode:
			n = v.Value
		case *ast.TagNode:
			n = v.Value
		case *ast.AliasNode:
			n = r.anchors[v.Value.GetToken().Value]
		default:
			return n
		}
	}
	return nil
}

// field is one key a mapping may have and what reads its value.
type field struct {
	key  string
	read func(ast.Node)
}

// mapping reads n, which must be a mapping with no keys but those of fields.
func (r *reader) mapping(n ast.Node, what string, fields []field) {
	keys := make([]string, len(fields))
	for i, f := range fields {
		keys[i] = f.key
	}
	allowed := strings.Join(keys, ", ")
	var pairs []*ast.MappingValueNode
	switch v := r.plain(n).(type) {
	case *ast.MappingNode:
		pairs = v.Values
	case *ast.MappingValueNode:
		pairs = []*ast.MappingValueNode{v}
	default:
		r.add(n, allowed, "%s is %s, not a mapping of keys to values", what, kind(v))
		return
	}
	seen := map[string]bool{}
next:
	for _, p := range pairs {
		key := p.Key.GetToken().Value
		if seen[key] {
			r.add(p.Key, "", "%s has the key %q twice", what, key)
			continue
		}
		seen[key] = true
		for _, f := range fields {
			if f.key == key {
				f.read(p.Value)
				continue next
			}
		}
		r.add(p.Key, allowed, "unknown key %q in %s", key, what)
	}
}

// kind says in words what a node is.
func kind(n ast.Node) string {
	switch n.(type) {
	case nil, *ast.NullNode:
		return "empty"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return "a number"
	case *ast.BoolNode:
		return "a truth value"
	}
	return "a text"
}

// list reads every element of n, which must be a list.
func (r *reader) list(what string, read func(ast.Node)) func(ast.Node) {
	return func(n ast.Node) {
		switch v := r.plain(n).(type) {
		case *ast.SequenceNode:
			for _, e := range v.Values {
				read(e)
			}
		case nil, *ast.NullNode:
		default:
			r.add(n, "", "%s is %s: write a list", what, kind(v))
		}
	}
}

// scalar reads n, which must be a single value, by its text.
func (r *reader) scalar(key string, set func(string) error) func(ast.Node) {
	return func(n ast.Node) {
		switch v := r.plain(n).(type) {
		case *ast.MappingNode, *ast.MappingValueNode, *ast.SequenceNode, *ast.NullNode, nil:
			r.add(n, "", "%s is %s: write a single value", key, kind(v))
		default:
			text := v.GetToken().Value
			if l, ok := v.(*ast.LiteralNode); ok {
				text = l.Value.Value
			}
			if err := set(text); err != nil {
				r.add(n, "", "%s: %v", key, err)
			}
		}
	}
}

func (r *reader) text(key string, to *string) field {
	return field{key, r.scalar(key, func(s string) error { *to = s; return nil })}
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

func (r *reader) topology(n ast.Node, t *Topology) {
	t.line = line(n)
	r.mapping(n, "the lab", []field{
		r.text("name", &t.Name),
		{"controller", func(n ast.Node) {
			one := r.scalar("controller", func(s string) error {
				t.Controllers = append(t.Controllers, s)
				if err := checkController(s); err != nil {
					return fmt.Errorf("%w; allowed: %s", err, ctlRule)
				}
				return nil
			})
			if _, ok := r.plain(n).(*ast.SequenceNode); ok {
				r.list("controller", one)(n)
				return
			}
			one(n)
		}},
		{"switches", r.list("switches", func(n ast.Node) { t.Switches = append(t.Switches, r.oneSwitch(n)) })},
		{"hosts", r.list("hosts", func(n ast.Node) { t.Hosts = append(t.Hosts, r.host(n)) })},
		{"links", r.list("links", func(n ast.Node) { t.Links = append(t.Links, r.link(n)) })},
	})
}

func (r *reader) oneSwitch(n ast.Node) Switch {
	s := Switch{line: line(n)}
	r.mapping(n, "a switch", []field{
		r.text("name", &s.Name),
		{"dpid", r.scalar("dpid", func(v string) (err error) { s.DPID, err = ParseDPID(v); return err })},
		{"protocols", r.list("protocols", r.scalar("protocols", func(v string) error { s.Protocols = append(s.Protocols, v); return nil }))},
		r.text("fail_mode", &s.FailMode),
	})
	return s
}

func (r *reader) shape(s *Shape) []field {
	return []field{
		{"rate", r.scalar("rate", func(v string) (err error) { s.Rate, err = ParseRate(v); return err })},
		{"delay", r.scalar("delay", func(v string) (err error) { s.Delay, err = ParseDelay(v); return err })},
		{"jitter", r.scalar("jitter", func(v string) (err error) { s.Jitter, err = ParseDelay(v); return err })},
		{"loss", r.scalar("loss", func(v string) (err error) { s.Loss, err = ParsePercent(v); return err })},
		r.number("mtu", minMTU, maxMTU, func(v uint64) { s.MTU = int(v) }),
	}
}

func (r *reader) host(n ast.Node) Host {
	h := Host{line: line(n)}
	r.mapping(n, "a host", append([]field{
		r.text("name", &h.Name),
		r.text("switch", &h.Switch),
		r.number("port", 1, maxPort, func(v uint64) { h.Port = uint16(v) }),
		{"mac", r.scalar("mac", func(v string) error { return h.MAC.UnmarshalText([]byte(v)) })},
		{"ipv4", r.scalar("ipv4", func(v string) (err error) { h.IPv4, err = parsePrefix(v, NoIPv4(), "10.0.0.1/24"); return err })},
		{"ipv6", r.scalar("ipv6", func(v string) (err error) { h.IPv6, err = parsePrefix(v, NoIPv6(), "fd00::1/64"); return err })},
		{"gateway4", r.scalar("gateway4", func(v string) (err error) { h.GW4, err = netip.ParseAddr(v); return err })},
		{"gateway6", r.scalar("gateway6", func(v string) (err error) { h.GW6, err = netip.ParseAddr(v); return err })},
		r.number("vlan", 1, 4094, func(v uint64) { h.VLAN = uint16(v) }),
	}, r.shape(&h.Shape)...))
	return h
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

func (r *reader) link(n ast.Node) Link {
	l := Link{line: line(n)}
	r.mapping(n, "a link", append([]field{
		r.text("a", &l.A),
		r.text("b", &l.B),
		r.number("a_port", 1, maxPort, func(v uint64) { l.APort = uint16(v) }),
		r.number("b_port", 1, maxPort, func(v uint64) { l.BPort = uint16(v) }),
	}, r.shape(&l.Shape)...))
	return l
}
