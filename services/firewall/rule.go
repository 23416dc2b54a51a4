package firewall

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// The actions of rules, and of defaults.
const (
	actionAllow = "allow"
	actionDeny  = "deny"
	actionBlock = "block"
)

// rule is one rule. Only its counts change.
type rule struct {
	id       string
	priority uint16
	deny     bool
	sw       flow.DPID // where it holds, if local
	local    bool
	wide     bool              // it holds in all virtual networks of its tenant
	vlans    []uint16          // these, when it was added to the book
	msg      *api.FirewallRule // as stored; read-only
	parsed   []condition       // until a classifier takes it
	conds    []*cond           // set then
	count    *count            // of packets that it decided on here
	asks     []api.Need        // of switches
}

// condition is what a rule asks for, as a match and ranges of ports. A rule on
// fields that IPv4 and IPv6 share, and that names neither, has two.
type condition struct {
	match    flow.Match
	src, dst portRange
}

// The limits of texts.
const (
	maxID      = 64
	maxComment = 256
)

var idForm = regexp.MustCompile(`^[A-Za-z0-9_.:-]+$`)

// dotted reports whether a name has a dot where api.CheckName allows none.
func dotted(s string) bool {
	return strings.HasPrefix(s, ".") || strings.HasSuffix(s, ".") || strings.Contains(s, "..")
}

// parseRule reads a rule. The error names the wrong key and says what is allowed.
// The caller handles an empty id.
func parseRule(m *api.FirewallRule) (*rule, error) {
	r := &rule{id: m.Id, priority: uint16(m.Priority), deny: m.Action == actionDeny, count: &count{}}
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if m.Id != "" && (len(m.Id) > maxID || !idForm.MatchString(m.Id) || dotted(m.Id)) {
		wrong("id %q: want letters, digits and any of \"-_.:\", up to %d", m.Id, maxID)
	}
	if m.Priority > 65535 {
		wrong("priority %d: want 0 to 65535", m.Priority)
	}
	if m.Action != actionAllow && m.Action != actionDeny {
		wrong("action %q: want allow or deny", m.Action)
	}
	if len(m.Comment) > maxComment {
		wrong("comment: want at most %d octets, it has %d", maxComment, len(m.Comment))
	}
	if m.Dpid != "" {
		sw, err := flow.ParseDPID(m.Dpid)
		if err != nil {
			wrong("dpid: %w", err)
		}
		r.sw, r.local = sw, true
	}
	if m.Tenant != "" && (len(m.Tenant) > maxID || !idForm.MatchString(m.Tenant) || dotted(m.Tenant)) {
		wrong("tenant %q: want letters, digits and any of \"-_.:\", up to %d", m.Tenant, maxID)
	}
	if r.wide = m.Tenant != "" && m.Vlan == 0; r.wide {
		for name := range m.Match {
			if strings.EqualFold(name, "vlan_vid") {
				wrong("tenant %s and match vlan_vid: leave one of them out, or give one VLAN of the tenant as vlan", m.Tenant)
			}
		}
	}
	var err error
	if r.parsed, err = parseConditions(m); err != nil {
		errs = append(errs, err)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	r.asks = needs(r.parsed)
	return r, nil
}

// newRule reads a rule that is asked for now.
func newRule(m *api.FirewallRule) (*rule, error) {
	r, err := parseRule(m)
	if err != nil {
		return nil, err
	}
	return r, checkFields(r.parsed)
}

// checkFields returns an error if rules cannot ask for a field. What switches refuse the
// controller judges; of these fields it gets nothing, and a rule would be passed.
func checkFields(conditions []condition) error {
	for _, c := range conditions {
		for _, f := range []flow.Field{flow.FieldMetadata, flow.FieldInPhyPort} {
			if c.match.Set.Has(f) {
				return fmt.Errorf("match %v: it says nothing of the packet, and the controller, which judges where switches cannot, does not get it; leave it out", f)
			}
		}
	}
	return nil
}

// needs returns what a rule asks of switches, beyond what the controller makes up for: it
// judges what a switch cannot ask for, but of the packet's fields alone.
func needs(conditions []condition) (list []api.Need) {
	if slices.ContainsFunc(conditions, func(c condition) bool { return c.match.Set.Has(flow.FieldTunnelID) }) {
		list = append(list, api.NeedTunnelID)
	}
	return list
}

// conditions returns what a rule asks for; a tenant's rule asks for it in each of
// the tenant's virtual networks.
func (r *rule) conditions() ([]condition, error) {
	if !r.wide {
		return parseConditions(r.msg)
	}
	var list []condition
	for _, vlan := range r.vlans {
		some, err := parseConditions(&api.FirewallRule{Match: r.msg.Match, Vlan: uint32(vlan)})
		if err != nil {
			return nil, err
		}
		list = append(list, some...)
	}
	return list, nil
}

// number marks a rule's entries.
func (r *rule) number() uint32 { return r.msg.Number }

// portFields are the fields that may be ranges, with their protocols.
var portFields = map[string]string{
	"tcp_src": "6", "tcp_dst": "6", "udp_src": "17", "udp_dst": "17", "sctp_src": "132", "sctp_dst": "132",
}

// parseConditions reads the conditions of a rule.
func parseConditions(m *api.FirewallRule) ([]condition, error) {
	text := make(map[string]string, len(m.Match)+3)
	for name, value := range m.Match {
		lower := strings.ToLower(name)
		if _, twice := text[lower]; twice {
			return nil, fmt.Errorf("match: field %s is given twice", lower)
		}
		text[lower] = value
	}
	if m.Vlan != 0 {
		if m.Vlan > 4094 {
			return nil, fmt.Errorf("vlan %d: want 1 to 4094, or 0 to say nothing", m.Vlan)
		}
		if v, ok := text["vlan_vid"]; ok && v != strconv.Itoa(int(m.Vlan)) {
			return nil, fmt.Errorf("vlan %d and match vlan_vid=%s: leave one of them out", m.Vlan, v)
		}
		text["vlan_vid"] = strconv.Itoa(int(m.Vlan))
	}
	src, dst := everyPort, everyPort
	for name := range portFields {
		value, ok := text[name]
		from, to, ranged := strings.Cut(value, "-")
		if !ok || !ranged {
			continue
		}
		a, errA := strconv.ParseUint(strings.TrimSpace(from), 0, 16)
		b, errB := strconv.ParseUint(strings.TrimSpace(to), 0, 16)
		if errA != nil || errB != nil || a > b {
			return nil, fmt.Errorf("match %s=%s: want a port, or a range such as 1024-65535", name, value)
		}
		if imply(text, "ip_proto", portFields[name]); a == b {
			text[name] = strconv.Itoa(int(a))
			continue
		}
		delete(text, name)
		if err := only(text, "ip_proto", portFields[name], name); err != nil {
			return nil, err
		}
		if strings.HasSuffix(name, "_src") {
			src = portRange{uint16(a), uint16(b)}
		} else {
			dst = portRange{uint16(a), uint16(b)}
		}
	}
	families := complete(text)
	list := make([]condition, 0, len(families))
	for _, ethType := range families {
		if ethType != "" {
			text["eth_type"] = ethType
		}
		match, err := flow.ParseMatch(text)
		if err != nil {
			return nil, err
		}
		match.Normalize()
		if err := match.Check(); err != nil {
			return nil, err
		}
		list = append(list, condition{match, src, dst})
	}
	return list, nil
}

// imply sets a field that another one needs, unless it is set.
func imply(text map[string]string, name, value string) {
	if _, ok := text[name]; !ok {
		text[name] = value
	}
}

// only checks that a field taken out of the match has what it needs.
func only(text map[string]string, name, value, of string) error {
	is, err := strconv.ParseUint(text[name], 0, 8)
	if want, _ := strconv.ParseUint(value, 10, 8); err != nil || is != want {
		return fmt.Errorf("match %s: needs %s=%s, but it is %s", of, name, value, text[name])
	}
	return nil
}

// complete adds what fields imply and returns the ethertypes to ask for: two for
// IPv4 and IPv6, an empty one if the match suffices.
func complete(text map[string]string) []string {
	has := func(prefixes ...string) bool {
		for name := range text {
			for _, p := range prefixes {
				if strings.HasPrefix(name, p) {
					return true
				}
			}
		}
		return false
	}
	for name, proto := range portFields {
		if _, ok := text[name]; ok {
			imply(text, "ip_proto", proto)
		}
	}
	if has("icmpv4_") {
		imply(text, "ip_proto", "1")
	}
	if has("icmpv6_") {
		imply(text, "ip_proto", "58")
	}
	if has("vlan_pcp") {
		imply(text, "vlan_vid", "any")
	}
	switch {
	case has("eth_type"):
	case has("arp_"):
		imply(text, "eth_type", "0x0806")
	case has("ipv4_", "icmpv4_"):
		imply(text, "eth_type", "0x0800")
	case has("ipv6_", "icmpv6_"):
		imply(text, "eth_type", "0x86dd")
	case has("ip_proto", "ip_dscp", "ip_ecn"):
		switch text["ip_proto"] {
		case "1":
			imply(text, "eth_type", "0x0800")
		case "58":
			imply(text, "eth_type", "0x86dd")
		default:
			return []string{"0x0800", "0x86dd"}
		}
	}
	return []string{""}
}

// sameRule reports whether two rules say the same, leaving out what the firewall
// adds to them.
func sameRule(a, b *api.FirewallRule) bool {
	return a.Id == b.Id && a.Priority == b.Priority && a.Action == b.Action && a.Dpid == b.Dpid && a.Tenant == b.Tenant &&
		a.Vlan == b.Vlan && a.Comment == b.Comment && maps.Equal(a.Match, b.Match)
}

// same reports whether a rule that is there, if not nil, says the same as r, read from m.
func (r *rule) same(old *rule, m *api.FirewallRule) bool {
	return old != nil && sameRule(old.msg, r.kept(m, old.number()))
}

// kept returns a rule in its stored form: with its id and number, and the switch
// in its usual notation.
func (r *rule) kept(m *api.FirewallRule, number uint32) *api.FirewallRule {
	k := proto.CloneOf(m)
	k.Id, k.Number, k.Packets, k.Bytes, k.State, k.Reason = r.id, number, 0, 0, "", ""
	if r.local {
		k.Dpid = r.sw.String()
	}
	return k
}
