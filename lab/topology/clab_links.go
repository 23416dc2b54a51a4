package topology

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/weft-sdn/weft/internal/document"
)

// clabLink is a link of a topology of containerlab.
type clabLink struct {
	ends [2]clabEnd
	mtu  string
	own  []document.Entry // of one that Loom wrote: as in a lab file
	line int
}

// clabEnd is an end of a link; without a node it leads out of the lab.
type clabEnd struct {
	node            *clabNode
	port            string
	mac, ipv4, ipv6 string
}

// outside are names of ends that are no nodes.
var outside = []string{"host", "mgmt-net", "macvlan", "dummy", "vxlan", "vxlan-stitch"}

// readLinks reads the links, and counts those that lead out of the lab.
func (c *clab) readLinks() error {
	links, _ := c.topology.Get("links")
	if links.Kind != document.List && links.Kind != document.Null && links.Line > 0 {
		return c.fail(links.Line, "links is %s: write a list", kind(links))
	}
	out := 0
	for _, v := range links.Items {
		if one, single := v.Get("endpoint"); single && one.Kind == document.Mapping {
			out++ // host, mgmt-net, macvlan, dummy, vxlan and others have one end
			continue
		}
		ends, _ := v.Get("endpoints")
		if ends.Kind != document.List || len(ends.Items) != 2 {
			return c.fail(v.Line, "a link has no two endpoints")
		}
		mtu, _ := v.Get("mtu")
		l := clabLink{line: v.Line, mtu: mtu.Text}
		var err error
		if l.own, err = c.loomLabel(v); err != nil {
			return err
		}
		for i, e := range ends.Items {
			end, leaves, err := c.end(e)
			if err != nil {
				return err
			}
			if leaves {
				out++
			}
			for key, to := range map[string]*string{"ipv4": &end.ipv4, "ipv6": &end.ipv6} {
				if all, _ := v.Get(key); len(all.Items) == 2 && all.Items[i].Text != "" {
					*to = all.Items[i].Text
				}
			}
			l.ends[i] = end
		}
		c.links = append(c.links, l)
	}
	if out > 0 {
		c.remark("links that lead out of the lab were left out: %d", out)
	}
	return nil
}

// end reads an end of a link: "NODE:PORT", or a mapping.
func (c *clab) end(v document.Value) (e clabEnd, out bool, err error) {
	node := c.said(v)
	if v.Kind == document.Mapping {
		of := func(key string) string {
			value, _ := v.Get(key)
			return c.said(value)
		}
		node, e.port, e.mac, e.ipv4, e.ipv6 = of("node"), of("interface"), of("mac"), of("ipv4"), of("ipv6")
	} else if at := strings.LastIndexByte(node, ':'); at >= 0 {
		node, e.port = node[:at], node[at+1:]
	}
	if at := strings.IndexByte(node, ':'); at >= 0 && slices.Contains(outside, node[:at]) {
		return e, true, nil
	}
	switch e.node = c.named[node]; {
	case e.node != nil:
		return e, false, nil
	case slices.Contains(outside, node):
		return e, true, nil
	}
	return e, false, c.fail(v.Line, "a link ends at %q, which is no node", node)
}

// clabSettings is what the commands of a host set: addresses by interface, and routes.
type clabSettings struct {
	addresses map[string][]netip.Prefix
	mac       map[string]string
	routes    []netip.Addr // their next hops
	unread    bool         // there are other commands
}

// settings reads the commands of a host: those of the defaults, of its kind and of its
// group are run, too.
func (c *clab) settings(n *clabNode) clabSettings {
	s := clabSettings{addresses: map[string][]netip.Prefix{}, mac: map[string]string{}}
	levels := c.levels(n)
	slices.Reverse(levels)
	for _, of := range levels {
		all, _ := of.Get("exec")
		for _, command := range all.Items {
			words, err := SplitWords(command.Text)
			if err != nil || !s.command(words) {
				s.unread = true
			}
		}
	}
	return s
}

// command takes a command of ip(8); false if it is another one.
func (s *clabSettings) command(words []string) bool {
	if len(words) > 0 && words[0] == "ip" {
		words = words[1:]
		for len(words) > 0 && strings.HasPrefix(words[0], "-") {
			words = words[1:]
		}
	} else {
		return false
	}
	if len(words) < 3 {
		return false
	}
	object, verb, rest := words[0], words[1], words[2:]
	after := func(key string) string {
		if i := slices.Index(rest, key); i >= 0 && i+1 < len(rest) {
			return rest[i+1]
		}
		return ""
	}
	adds := slices.Contains([]string{"a", "add", "append", "replace"}, verb)
	switch {
	case strings.HasPrefix("address", object) && adds:
		for _, w := range rest {
			if p, err := netip.ParsePrefix(w); err == nil {
				s.addresses[after("dev")] = append(s.addresses[after("dev")], p)
				return true
			}
		}
	case strings.HasPrefix("route", object) && adds:
		if a, err := netip.ParseAddr(after("via")); err == nil {
			s.routes = append(s.routes, a)
			return true
		}
	case strings.HasPrefix("link", object) && verb == "set":
		if after("address") != "" {
			s.mac[after("dev")] = after("address")
		}
		return true
	}
	return false
}

// address returns the first address of a family, 4 or 6, of an interface; empty if
// there is none.
func (s *clabSettings) address(port string, family int) string {
	for _, p := range s.addresses[port] {
		if p.Addr().Is4() == (family == 4) {
			return p.String()
		}
	}
	return ""
}

// gateway returns the first next hop of a route that is in the network of an address;
// empty if there is none.
func (s *clabSettings) gateway(address string) string {
	p, err := netip.ParsePrefix(address)
	if err != nil {
		return ""
	}
	for _, a := range s.routes {
		if p.Contains(a) && a != p.Addr() {
			return a.String()
		}
	}
	return ""
}
