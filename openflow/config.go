package openflow

const configLen = HeaderLen + 4

// How a switch treats IP fragments: the flags of a configuration (OpenFlow
// 1.3.5 §7.3.2). FragNXMatch is Open vSwitch's: a first fragment has the transport
// fields that it carries, which OpenFlow means by FragNormal, while in Open vSwitch
// that leaves all fragments without (ovs-fields(7), ip_frag).
const (
	FragNormal  uint16 = 0
	FragDrop    uint16 = 1
	FragReasm   uint16 = 2
	FragNXMatch uint16 = 3
	FragMask    uint16 = 3
)

// AppendGetConfigRequest appends a request for the switch's configuration.
func (v Version) AppendGetConfigRequest(dst []byte, xid uint32) []byte {
	return appendBare(dst, v, uint8(TypeGetConfigRequest), xid)
}

// AppendGetConfigReply appends a reply with the switch's configuration.
func (v Version) AppendGetConfigReply(dst []byte, xid uint32, flags, missSendLen uint16) []byte {
	return v.appendConfig(dst, TypeGetConfigReply, xid, flags, missSendLen)
}

// AppendSetConfig appends a message that sets the switch's configuration:
// Frag… flags, and how many octets of a packet that misses it sends
// (flow.NoBuffer for all).
func (v Version) AppendSetConfig(dst []byte, xid uint32, flags, missSendLen uint16) []byte {
	return v.appendConfig(dst, TypeSetConfig, xid, flags, missSendLen)
}

func (v Version) appendConfig(dst []byte, t Type, xid uint32, flags, missSendLen uint16) []byte {
	dst = be.AppendUint64(dst, uint64(v)<<56|uint64(t)<<48|configLen<<32|uint64(xid))
	return be.AppendUint32(dst, uint32(flags)<<16|uint32(missSendLen))
}

// DecodeConfig reads a get-config reply or a set-config.
func (v Version) DecodeConfig(msg []byte) (flags, missSendLen uint16, err error) {
	if len(msg) < configLen {
		return 0, 0, malformed(TypeSetConfig, len(msg), "cut short", badRequestLen)
	}
	return be.Uint16(msg[8:]), be.Uint16(msg[10:]), nil
}
