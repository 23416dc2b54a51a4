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
)

// bindingShelf stores bindings.
type bindingPersister struct{ journal }

// load reads the stored bindings. It reports and leaves out those that cannot
// be read and those that the configuration overrides.
func (s *bindingPersister) load(ctx context.Context, b *bindings, bad func(key string, err error)) error {
	if err := s.read(ctx, b.restore, bad); err != nil {
		return fmt.Errorf("hosts: read bindings: %w", err)
	}
	return nil
}

var errConfigured = errors.New("the configuration says otherwise and counts")

// restore restores one stored value.
func (b *bindings) restore(key string, value []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
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
		if _, ok := b.ports[at]; ok {
			return errConfigured
		}
		b.ports[at] = portSettings{int(m.MaxHosts), m.Sticky, byOperator}
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
	if b.of[one.who] != nil {
		return errConfigured
	}
	for _, ip := range one.ips {
		if owner, taken := b.owners.of(ip, one.who.vlan()); taken {
			return fmt.Errorf("%v is bound to %v", ip, owner.mac())
		}
	}
	b.put(one)
	delete(b.dirty, one.key())
	return nil
}

// save writes the changed keys.
func (s *bindingPersister) save(ctx context.Context, b *bindings) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	values := b.take()
	for key, m := range values {
		if err := s.put(ctx, key, m); err != nil {
			b.mu.Lock()
			for key := range values {
				b.dirty[key] = struct{}{} // including those that were written: harmless
			}
			b.mu.Unlock()
			return fmt.Errorf("hosts: keep binding %s: %w", key, err)
		}
	}
	return nil
}

// take returns the values to write, by key; nil means delete.
func (b *bindings) take() map[string]proto.Message {
	b.mu.Lock()
	defer b.mu.Unlock()
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
			values[portKey(at)] = b.portMessage(at)
		}
	}
	clear(b.dirty)
	return values
}
