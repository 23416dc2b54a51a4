package openflow

// AppendEchoRequest appends an echo request (OpenFlow 1.3.5 §7.5.2).
func (v Version) AppendEchoRequest(dst []byte, xid uint32, data []byte) ([]byte, error) {
	return v.appendEcho(dst, TypeEchoRequest, xid, data)
}

// AppendEchoReply appends an echo reply (OpenFlow 1.3.5 §7.5.3); its data is
// that of the request: msg[HeaderLen:].
func (v Version) AppendEchoReply(dst []byte, xid uint32, data []byte) ([]byte, error) {
	return v.appendEcho(dst, TypeEchoReply, xid, data)
}

func (v Version) appendEcho(dst []byte, t Type, xid uint32, data []byte) ([]byte, error) {
	n := HeaderLen + len(data)
	if n > MaxLen {
		return dst, &TooLongError{Type: t, Length: n}
	}
	dst = append(dst, byte(v), byte(t), byte(n>>8), byte(n), byte(xid>>24), byte(xid>>16), byte(xid>>8), byte(xid))
	return append(dst, data...), nil
}

// AppendBarrierRequest appends a barrier request (OpenFlow 1.3.5 §7.3.8).
func (v Version) AppendBarrierRequest(dst []byte, xid uint32) []byte {
	if v == V10 {
		return appendBare(dst, v, wire10BarrierRequest, xid)
	}
	return appendBare(dst, v, uint8(TypeBarrierRequest), xid)
}

// AppendBarrierReply appends a barrier reply.
func (v Version) AppendBarrierReply(dst []byte, xid uint32) []byte {
	if v == V10 {
		return appendBare(dst, v, wire10BarrierReply, xid)
	}
	return appendBare(dst, v, uint8(TypeBarrierReply), xid)
}

// Experimenter is a message of an experimenter's (vendor's) own (OpenFlow
// 1.3.5 §7.5.4).
type Experimenter struct {
	ID   uint32
	Type uint32 // OpenFlow 1.0 has none: it is the start of Data
	Data []byte
}

// AppendExperimenter appends an experimenter message (OpenFlow 1.3.5 §7.5.4);
// in OpenFlow 1.0 a vendor message, which has no type of its own.
func (v Version) AppendExperimenter(dst []byte, xid uint32, e *Experimenter) ([]byte, error) {
	start := len(dst)
	if v == V10 && e.Type != 0 {
		return dst, unsupported(v, "experimenter", "an experimenter type", badRequestType)
	}
	out := room(dst, HeaderLen+8+len(e.Data))
	out = appendHeader(out, v, uint8(TypeExperimenter), xid)
	out = be.AppendUint32(out, e.ID)
	if v != V10 {
		out = be.AppendUint32(out, e.Type)
	}
	out = append(out, e.Data...)
	return finish(out, start, TypeExperimenter)
}

// DecodeExperimenter reads an experimenter or vendor message; Data is a part of msg.
func (v Version) DecodeExperimenter(msg []byte) (Experimenter, error) {
	n := HeaderLen + 8
	if v == V10 {
		n = HeaderLen + 4
	}
	if len(msg) < n {
		return Experimenter{}, malformed(TypeExperimenter, len(msg), "cut short", badRequestLen)
	}
	e := Experimenter{ID: be.Uint32(msg[8:]), Data: msg[n:]}
	if v != V10 {
		e.Type = be.Uint32(msg[12:])
	}
	return e, nil
}
