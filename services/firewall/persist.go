package firewall

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// chunk is how many rules share one key of the store, by their numbers: a change
// of one rule writes so many, and loading many rules reads few keys.
const chunk = 512

const (
	keyRules    = "rules/"
	keyDefaults = "defaults"
	keySegments = "segments"
)

// chunkKey returns the key of a number's chunk.
func chunkKey(n uint32) string { return fmt.Sprintf("%s%08d", keyRules, n/chunk) }

// record is a value of the store: the rules of a chunk, the defaults, or whose virtual
// networks VLANs carry.
type record struct {
	said  proto.Message
	rules map[uint32]*rule // of it, by number
	value []byte           // as stored; nil: not yet
}

// messageOf returns an empty message of a key; nil if no record has it.
func messageOf(key string) proto.Message {
	switch {
	case key == keyDefaults:
		return &api.FirewallStatus{}
	case key == keySegments:
		return &api.ListNetworksResponse{}
	case strings.HasPrefix(key, keyRules):
		return &api.AddFirewallRulesRequest{}
	}
	return nil
}

// keyOf returns the key of a record.
func keyOf(said proto.Message) (string, error) {
	switch m := said.(type) {
	case *api.FirewallStatus:
		return keyDefaults, nil
	case *api.ListNetworksResponse:
		return keySegments, nil
	case *api.AddFirewallRulesRequest:
		return chunkKey(m.Rules[0].Number), nil
	}
	return "", errors.New("not the firewall's")
}

// format returns what is stored of a record.
func (p *record) format() (_ []byte, err error) {
	if p.value == nil {
		p.value, err = proto.Marshal(p.said)
	}
	return p.value, err
}

// readRecord reads a record that is stored.
func (b *book) readRecord(key string, value []byte) (*record, error) {
	p := &record{said: messageOf(key), value: value}
	if p.said == nil {
		return nil, errors.New("not the firewall's")
	}
	if err := proto.Unmarshal(value, p.said); err != nil {
		return nil, err
	}
	switch m := p.said.(type) {
	case *api.FirewallStatus:
		err := checkDefault(m.DefaultAction)
		for _, s := range m.Switches {
			_, bad := flow.ParseDPID(s.Dpid)
			err = cmp.Or(err, bad, checkDefault(s.DefaultAction))
		}
		return p, err
	case *api.AddFirewallRulesRequest:
		if len(m.Rules) == 0 {
			return nil, errors.New("it has no rules")
		}
		p.rules = map[uint32]*rule{}
		ids := map[string]bool{}
		for _, m := range m.Rules {
			r, err := parseRule(m)
			if err != nil {
				return nil, fmt.Errorf("rule %s of an earlier run: %w", m.Id, err)
			}
			there := b.rules[m.Id]
			if m.Number == 0 || chunkKey(m.Number) != key || p.rules[m.Number] != nil || ids[m.Id] || there != nil && there.number() != m.Number {
				return nil, fmt.Errorf("rule %s of an earlier run: its number %d or its id is there twice, or the number is not of %s", m.Id, m.Number, key)
			}
			r.msg, p.rules[m.Number], ids[m.Id] = m, r, true
		}
	}
	return p, nil
}

// apply follows a change of a record.
func (b *book) apply(old, now *record) {
	switch m := cmp.Or(now, old).said.(type) {
	case *api.FirewallStatus:
		b.setDefaults(m)
	case *api.ListNetworksResponse:
		if b.segments == nil { // else the network has said more
			news := map[uint16]string{}
			for _, n := range m.Networks {
				if n.Segment > 0 && n.Segment < 4095 && n.Tenant != "" {
					news[uint16(n.Segment)] = n.Tenant
				}
			}
			b.assign(news)
		}
	case *api.AddFirewallRulesRequest:
		var fresh []*rule
		for n := range numbersWith(m.Rules[0].Number) {
			was, is := b.numbers[n], now.rule(n)
			if was != nil && is != nil && was.msg == is.msg || was == is {
				continue
			}
			if was != nil && is != nil && was.id == is.id {
				is.count = was.count
			}
			if was != nil {
				b.leave(was)
			}
			if is != nil {
				fresh = append(fresh, is)
			}
		}
		for _, r := range fresh {
			b.enter(r)
		}
	}
}

// rule returns a rule of a record; nil if there is none.
func (p *record) rule(n uint32) *rule {
	if p == nil {
		return nil
	}
	return p.rules[n]
}

// numbersWith iterates over the numbers of the chunk of one.
func numbersWith(n uint32) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for i := n / chunk * chunk; i < n/chunk*chunk+chunk && yield(i); i++ {
		}
	}
}

// chunkOf returns the record of a number's chunk in which others have the rules of next;
// nil if none has one.
func (b *book) chunkOf(n uint32, next map[uint32]*rule) *record {
	m := &api.AddFirewallRulesRequest{}
	p := &record{said: m, rules: map[uint32]*rule{}}
	for n := range numbersWith(n) {
		r, changed := next[n]
		if !changed {
			r = b.numbers[n]
		}
		if r != nil {
			p.rules[n], m.Rules = r, append(m.Rules, r.msg)
		}
	}
	if len(m.Rules) == 0 {
		return nil
	}
	return p
}

// defaultsRecord and segmentsRecord return the records of the defaults, and of the virtual
// networks.
func defaultsRecord(back string, own map[flow.DPID]string) *record {
	m := &api.FirewallStatus{DefaultAction: back}
	for _, sw := range slices.Sorted(maps.Keys(own)) {
		m.Switches = append(m.Switches, &api.FirewallSwitch{Dpid: sw.String(), DefaultAction: own[sw], OwnDefault: true})
	}
	return &record{said: m}
}

func segmentsRecord(segments map[uint16]string) *record {
	m := &api.ListNetworksResponse{}
	for _, vlan := range slices.Sorted(maps.Keys(segments)) {
		m.Networks = append(m.Networks, &api.TenantNetwork{Tenant: segments[vlan], Segment: uint32(vlan)})
	}
	return &record{said: m}
}
