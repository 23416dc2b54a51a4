package hosts

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// Keys of bindings, and of ports' settings, in the store.
const (
	hostPrefix = "host/"
	portPrefix = "port/"
)

func (one *binding) key() string {
	return fmt.Sprintf("%s%d/%s", hostPrefix, one.who.vlan(), strings.ReplaceAll(one.who.mac().String(), ":", "-"))
}

func portKey(at flow.Location) string {
	return fmt.Sprintf("%s%s/%d", portPrefix, strings.ReplaceAll(at.Switch.String(), ":", ""), uint32(at.Port))
}

// bindingShelf stores bindings.
type bindingPersister struct{ journal }

// load reads the stored bindings. It reports and leaves out those that cannot
// be read and those that the configuration overrides.
func (s *bindingPersister) load(ctx context.Context, t *table, bad func(key string, err error)) error {
	if err := s.read(ctx, t.restoreBinding, bad); err != nil {
		return fmt.Errorf("hosts: read bindings: %w", err)
	}
	return nil
}

var errConfigured = errors.New("the configuration says otherwise and counts")

// restoreBinding restores one stored value.
func (t *table) restoreBinding(key string, value []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	read := protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal
	if strings.HasPrefix(key, portPrefix) {
		m := &api.PortSecurity{}
		if err := read(value, m); err != nil {
			return err
		}
		at, err := readPort(m.Dpid, m.Port)
		if err != nil {
			return err
		}
		if _, ok := t.bindings.ports[at]; ok {
			return errConfigured
		}
		t.bindings.ports[at] = portSettings{int(m.MaxHosts), m.Sticky, byOperator}
		return nil
	}
	m := &api.HostBinding{}
	if err := read(value, m); err != nil {
		return err
	}
	one, err := readBinding(m)
	if err != nil {
		return err
	}
	if one.sticky = m.Kind == "sticky"; one.sticky {
		one.origin = byLearning
	}
	if at, err := time.Parse(time.RFC3339Nano, m.Since); err == nil {
		one.since = at.UnixNano()
	}
	if t.bindings.of[one.who] != nil {
		return errConfigured
	}
	for _, ip := range one.ips {
		if owner, taken := t.boundTo(ip, one.who.vlan()); taken {
			return fmt.Errorf("%v is bound to %v", ip, owner.mac())
		}
	}
	t.bindings.put(one)
	delete(t.bindings.dirty, one.key())
	return nil
}

// save writes the changed keys.
func (s *bindingPersister) save(ctx context.Context, t *table) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	values := t.takeBindings()
	for key, m := range values {
		if err := s.put(ctx, key, m); err != nil {
			t.mu.Lock()
			for key := range values {
				t.bindings.dirty[key] = struct{}{} // including those that were written: harmless
			}
			t.mu.Unlock()
			return fmt.Errorf("hosts: keep binding %s: %w", key, err)
		}
	}
	return nil
}

// takeBindings returns the values to write, by key; nil means delete.
func (t *table) takeBindings() map[string]proto.Message {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := &t.bindings
	if len(b.dirty) == 0 {
		return nil
	}
	values := make(map[string]proto.Message, len(b.dirty))
	for key := range b.dirty {
		values[key] = nil
	}
	for _, one := range b.of {
		if _, ok := b.dirty[one.key()]; ok && one.origin != byConfig {
			values[one.key()] = one.message()
		}
	}
	for at, set := range b.ports {
		if _, ok := b.dirty[portKey(at)]; ok && set.origin != byConfig {
			values[portKey(at)] = t.portMessage(at)
		}
	}
	clear(b.dirty)
	return values
}
