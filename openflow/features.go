package openflow

import "github.com/weft-sdn/weft/flow"

// Bits of Features.Capabilities (OpenFlow 1.3.5 §7.3.1).
const (
	CapFlowStats   uint32 = 1 << 0
	CapTableStats  uint32 = 1 << 1
	CapPortStats   uint32 = 1 << 2
	CapGroupStats  uint32 = 1 << 3
	CapIPReasm     uint32 = 1 << 5
	CapQueueStats  uint32 = 1 << 6
	CapARPMatchIP  uint32 = 1 << 7 // OpenFlow 1.0 only
	CapPortBlocked uint32 = 1 << 8
)

// Features is what a switch says of itself (OpenFlow 1.3.5 §7.3.1).
type Features struct {
	DPID         flow.DPID
	Buffers      uint32 // packets that it can keep
	Tables       uint8
	AuxiliaryID  uint8      // 0 on the main connection
	Capabilities uint32     // Cap…
	Actions      uint32     // OpenFlow 1.0 only: one bit per action of that version
	Ports        []PortDesc // OpenFlow 1.0 only; later versions have a multipart
}

const featuresLen = 32

// capabilities10 is the bits of Capabilities that mean the same in OpenFlow 1.0.
const capabilities10 = CapFlowStats | CapTableStats | CapPortStats | CapIPReasm | CapQueueStats | CapARPMatchIP

// AppendFeaturesRequest appends a features request.
func (v Version) AppendFeaturesRequest(dst []byte, xid uint32) []byte {
	return appendBare(dst, v, uint8(TypeFeaturesRequest), xid)
}

// AppendFeaturesReply appends a features reply. Ports and Actions go along in
// OpenFlow 1.0 only.
func (v Version) AppendFeaturesReply(dst []byte, xid uint32, f *Features) ([]byte, error) {
	start := len(dst)
	out := appendHeader(dst, v, uint8(TypeFeaturesReply), xid)
	out = be.AppendUint64(out, uint64(f.DPID))
	if v != V10 {
		out = be.AppendUint64(out, uint64(f.Buffers)<<32|uint64(f.Tables)<<24|uint64(f.AuxiliaryID)<<16)
		out = be.AppendUint64(out, uint64(f.Capabilities)<<32)
		return finish(out, start, TypeFeaturesReply)
	}
	out = be.AppendUint64(out, uint64(f.Buffers)<<32|uint64(f.Tables)<<24)
	out = be.AppendUint64(out, uint64(f.Capabilities&capabilities10)<<32|uint64(f.Actions))
	var err error
	for i := range f.Ports {
		if out, err = v.appendPort(out, "features-reply", &f.Ports[i]); err != nil {
			return out[:start], err
		}
	}
	return finish(out, start, TypeFeaturesReply)
}

// DecodeFeaturesReply reads a features reply.
func (v Version) DecodeFeaturesReply(msg []byte) (Features, error) {
	if len(msg) < featuresLen {
		return Features{}, malformed(TypeFeaturesReply, len(msg), "cut short", badRequestLen)
	}
	f := Features{DPID: flow.DPID(be.Uint64(msg[8:])), Buffers: be.Uint32(msg[16:]), Tables: msg[20], Capabilities: be.Uint32(msg[24:])}
	if v != V10 {
		f.AuxiliaryID = msg[21]
		return f, nil
	}
	f.Capabilities &= capabilities10
	f.Actions = be.Uint32(msg[28:])
	if (len(msg)-featuresLen)%portLen10 != 0 {
		return f, malformed(TypeFeaturesReply, len(msg), "list of ports cut short", badRequestLen)
	}
	if n := (len(msg) - featuresLen) / portLen10; n > 0 {
		f.Ports = make([]PortDesc, 0, n)
	}
	for off := featuresLen; off < len(msg); off += portLen10 {
		f.Ports = append(f.Ports, v.parsePort(msg[off:off+portLen10]))
	}
	return f, nil
}
