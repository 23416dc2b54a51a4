package api

import "github.com/weft-sdn/weft/flow"

// Tagged returns the VLAN that carries a virtual network, as flow.Key has it,
// and its ports. What cannot be read is left out; a VLAN of 0 is none.
func (s *Segment) Tagged() (vlan uint16, ports []flow.TaggedPort) {
	for _, p := range s.GetPorts() {
		if sw, err := flow.ParseDPID(p.Dpid); err == nil {
			ports = append(ports, flow.TaggedPort{At: flow.Location{Switch: sw, Port: flow.Port(p.Port)}, Tag: keyVLAN(p.Tag), Shared: p.Shared})
		}
	}
	return keyVLAN(s.GetVlan()), ports
}

func keyVLAN(vlan uint32) uint16 {
	if vlan == 0 || vlan >= uint32(flow.VLANPresent) {
		return 0
	}
	return uint16(vlan) | flow.VLANPresent
}
