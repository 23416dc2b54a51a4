package firewall

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
)

// bucket is where rules are kept.
type bucket interface {
	Put(ctx context.Context, key string, value []byte) (uint64, error)
	Delete(ctx context.Context, key string) error
	All(ctx context.Context, f func(key string, value []byte, revision uint64) error) error
}

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
	x := &change{}
	for _, m := range rules {
		r, conditions, err := parseRule(m)
		if err != nil {
			return fmt.Errorf("rule %s of an earlier run: %w", m.Id, err)
		}
		if m.Number == 0 || b.numbers[m.Number] != nil || b.rules[m.Id] != nil {
			return fmt.Errorf("rule %s of an earlier run: its number %d or its id is there twice", m.Id, m.Number)
		}
		r.msg = m
		b.enter(r, conditions, x)
	}
	b.publish(x)
	return nil
}

// save writes the chunks that hold the given numbers. next returns the rule of a
// number; nil if there is none.
func (b *store) save(ctx context.Context, numbers []uint32, next func(uint32) *api.FirewallRule) error {
	done := map[uint32]bool{}
	for _, n := range numbers {
		c := n / chunk
		if done[c] {
			continue
		}
		done[c] = true
		m := &api.AddFirewallRulesRequest{}
		for i := c * chunk; i < (c+1)*chunk; i++ {
			if r := next(i); r != nil {
				m.Rules = append(m.Rules, r)
			}
		}
		if len(m.Rules) == 0 {
			if err := b.bucket.Delete(ctx, chunkKey(c)); err != nil {
				return err
			}
			continue
		}
		value, err := proto.Marshal(m)
		if err != nil {
			return err
		}
		if _, err := b.bucket.Put(ctx, chunkKey(c), value); err != nil {
			return err
		}
	}
	return nil
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
