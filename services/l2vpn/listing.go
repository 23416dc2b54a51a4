package l2vpn

import (
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
)

// macsOf answers ListCircuitMacs.
func (b *store) macsOf(name string) (*api.ListCircuitMacsResponse, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.status[name]
	switch {
	case s == nil:
		return nil, missing(name)
	case s.lan == nil:
		return nil, api.Errorf(codes.FailedPrecondition, "circuit %s is a %s, which learns no addresses; of payload ip weft l2vpn get %s -o json shows the devices", name, s.circuit.Type, name)
	}
	now, r := b.now(), &api.ListCircuitMacsResponse{}
	for _, mac := range s.lan.macs() {
		x := s.lan.known[mac]
		m := &api.CircuitMac{Mac: mac.String(), End: x.at.String(), AgeS: uint32(max(now.Sub(x.heard), 0) / time.Second), Asked: x.asked, Moves: x.moved}
		if now.Before(x.held) {
			m.HeldUntil = x.held.UTC().Format(time.RFC3339)
		}
		r.Macs = append(r.Macs, m)
	}
	for _, e := range s.circuit.ends {
		if shut, is := s.lan.blocked[e]; is {
			r.Blocked = append(r.Blocked, &api.CircuitBlock{End: e.String(), Until: shut.until.UTC().Format(time.RFC3339), Reason: shut.why})
		}
	}
	return r, nil
}
