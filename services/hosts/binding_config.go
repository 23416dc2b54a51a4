package hosts

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// bindingConfig is the part of a configuration about bindings and ports.
type bindingConfig struct {
	bindings []*binding
	ports    map[flow.Location]portSettings
	routers  map[flow.Location]bool
}

// security reads and checks Bindings, Ports and RouterPorts.
func (c *Config) security() (bindingConfig, error) {
	s := bindingConfig{ports: map[flow.Location]portSettings{}, routers: map[flow.Location]bool{}}
	own, err := c.gateways()
	if err != nil {
		return s, err
	}
	known, addresses := map[id]bool{}, map[formerKey]id{}
	for i, b := range c.Bindings {
		m := &api.HostBinding{Mac: b.MAC, Vlan: uint32(b.VLAN), Ips: b.IPs}
		for _, text := range b.Ports {
			at, err := parsePort(text)
			if err != nil {
				return s, fmt.Errorf("bindings[%d].ports: %w", i, err)
			}
			m.At = append(m.At, api.NewLocation(at))
		}
		one, err := readBinding(m)
		if err != nil {
			return s, fmt.Errorf("bindings[%d]: %w", i, err)
		}
		if known[one.who] || own.macs[one.who.mac()] {
			return s, fmt.Errorf("bindings[%d].mac is %v: want one that is not bound before, and no host's that is the network's own", i, one.who.mac())
		}
		known[one.who] = true
		for _, ip := range one.ips {
			key := formerKey{ip, one.who.vlan()}
			if _, taken := addresses[key]; taken || own.ips[ip] {
				return s, fmt.Errorf("bindings[%d].ips has %v: want one that is not bound before, and not the network's own", i, ip)
			}
			addresses[key] = one.who
		}
		one.origin = byConfig
		s.bindings = append(s.bindings, one)
	}
	if len(c.Bindings) > maxBindings || len(c.Ports) > maxPorts {
		return s, fmt.Errorf("bindings and ports are %d and %d: want at most %d and %d", len(c.Bindings), len(c.Ports), maxBindings, maxPorts)
	}
	for i, p := range c.Ports {
		at, err := parsePort(p.Port)
		if err != nil {
			return s, fmt.Errorf("ports[%d].port: %w", i, err)
		}
		if _, twice := s.ports[at]; twice {
			return s, fmt.Errorf("ports[%d].port is %v: it is listed before", i, at)
		}
		if p.MaxHosts < 0 || p.MaxHosts > 1_000_000 || p.MaxHosts == 0 && !p.Sticky {
			return s, fmt.Errorf("ports[%d].max_hosts is %d: want 1 to 1000000, or sticky", i, p.MaxHosts)
		}
		s.ports[at] = portSettings{p.MaxHosts, p.Sticky, byConfig}
	}
	for i, text := range c.RouterPorts {
		at, err := parsePort(text)
		if err != nil {
			return s, fmt.Errorf("router_ports[%d]: %w", i, err)
		}
		s.routers[at] = true
	}
	return s, nil
}

// parsePort reads SWITCH/PORT.
func parsePort(s string) (flow.Location, error) {
	sw, port, ok := strings.Cut(s, "/")
	n, err := strconv.ParseUint(port, 10, 32)
	if !ok || err != nil {
		return flow.Location{}, fmt.Errorf("%.40q: want SWITCH/PORT, such as 1/3", s)
	}
	return readPort(sw, uint32(n))
}

// configure puts what the configuration says of bindings and ports into force,
// instead of what it said before. It takes precedence over what was set by others.
func (t *table) configure(now int64) {
	s, err := t.cfg.security()
	if err != nil {
		panic("hosts: configuration not validated: " + err.Error())
	}
	for who, one := range t.bindings.of {
		if one.origin == byConfig {
			t.bindings.drop(who)
		}
	}
	for at, set := range t.bindings.ports {
		if set.origin == byConfig {
			delete(t.bindings.ports, at)
		}
	}
	for _, one := range s.bindings {
		for _, ip := range one.ips {
			if owner, ok := t.bindings.owners.of(ip, one.who.vlan()); ok && owner != one.who {
				t.bindings.drop(owner)
			}
		}
		t.bindings.put(one)
	}
	for _, one := range s.bindings {
		t.enforceBinding(one)
	}
	for at, set := range s.ports {
		t.bindings.secure(now, at, set)
	}
	t.bindings.routers.Store(&s.routers)
	t.bindings.count++
}
