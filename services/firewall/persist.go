package firewall

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/object"
)

// chunk is how many rules share one key of the store, by their numbers: a change
// of one rule writes so many, and loading many rules reads few keys.
const chunk = 512

const (
	keyRules    = "rules/"
	keyDefaults = "defaults"
)

func chunkKey(n uint32) string { return fmt.Sprintf("%s%08d", keyRules, n) }

// load reads what an earlier run has stored. Unreadable data is an error: a
// firewall does not start with some of its rules.
func (b *store) load(ctx context.Context) error {
	if err := b.changes.Settle(ctx, nil); err != nil && b.damage() == "" {
		return err
	}
	var rules []*api.FirewallRule
	err := b.bucket.All(ctx, func(key string, value []byte, _ uint64) error {
		switch {
		case key == keyDefaults:
			var m api.FirewallStatus
			if err := proto.Unmarshal(value, &m); err != nil {
				return fmt.Errorf("firewall's defaults: %w", err)
			}
			return b.setDefaults(&m)
		case key == keySegments:
			return b.loadSegments(value)
		case strings.HasPrefix(key, keyRules):
			var m api.AddFirewallRulesRequest
			if err := proto.Unmarshal(value, &m); err != nil {
				return fmt.Errorf("firewall's rules under %s: %w", key, err)
			}
			rules = append(rules, m.Rules...)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, m := range rules {
		r, err := parseRule(m)
		if err != nil {
			return fmt.Errorf("rule %s of an earlier run: %w", m.Id, err)
		}
		if m.Number == 0 || b.numbers[m.Number] != nil || b.rules[m.Id] != nil {
			return fmt.Errorf("rule %s of an earlier run: its number %d or its id is there twice", m.Id, m.Number)
		}
		r.msg = m
		b.enter(r)
	}
	b.publish()
	return nil
}

// save writes the chunks in which numbers have other rules, all or none; nil is none.
func (b *store) save(ctx context.Context, next map[uint32]*rule) error {
	done := map[uint32]bool{}
	var list []object.Write
	for _, n := range slices.Sorted(maps.Keys(next)) {
		c := n / chunk
		if done[c] {
			continue
		}
		done[c] = true
		m := &api.AddFirewallRulesRequest{}
		for i := c * chunk; i < (c+1)*chunk; i++ {
			r, changed := next[i]
			if !changed {
				r = b.numbers[i]
			}
			if r != nil {
				m.Rules = append(m.Rules, r.msg)
			}
		}
		w := object.Write{Key: chunkKey(c)}
		if len(m.Rules) > 0 {
			var err error
			if w.After, err = proto.Marshal(m); err != nil {
				return err
			}
		}
		list = append(list, w)
	}
	return b.changes.Set(ctx, list)
}

// saveDefaults writes the defaults.
func (b *store) saveDefaults(ctx context.Context, m *api.FirewallStatus) error {
	value, err := proto.Marshal(m)
	if err != nil {
		return err
	}
	_, err = b.bucket.Put(ctx, keyDefaults, value)
	return err
}
