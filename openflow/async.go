package openflow

// Async says which asynchronous messages a controller receives (OpenFlow 1.3.5
// §7.3.10): a bit per reason; index 0 as master or equal, 1 as slave.
type Async struct {
	PacketIn    [2]uint32 // 1 << flow.Reason…
	PortStatus  [2]uint32 // 1 << Port…
	FlowRemoved [2]uint32 // 1 << Removed…
}

const asyncLen = HeaderLen + 24

// AppendGetAsyncRequest appends a request for the asynchronous configuration.
func (v Version) AppendGetAsyncRequest(dst []byte, xid uint32) ([]byte, error) {
	if v == V10 {
		return dst, unsupported(v, TypeGetAsyncRequest.String(), "asynchronous configuration", badRequestType)
	}
	return appendBare(dst, v, uint8(TypeGetAsyncRequest), xid), nil
}

// AppendGetAsyncReply appends a reply with the asynchronous configuration.
func (v Version) AppendGetAsyncReply(dst []byte, xid uint32, a *Async) ([]byte, error) {
	return v.appendAsync(dst, TypeGetAsyncReply, xid, a)
}

// AppendSetAsync appends a message that sets the asynchronous configuration.
func (v Version) AppendSetAsync(dst []byte, xid uint32, a *Async) ([]byte, error) {
	return v.appendAsync(dst, TypeSetAsync, xid, a)
}

func (v Version) appendAsync(dst []byte, t Type, xid uint32, a *Async) ([]byte, error) {
	if v == V10 {
		return dst, unsupported(v, t.String(), "asynchronous configuration", badRequestType)
	}
	start := len(dst)
	dst = appendHeader(dst, v, uint8(t), xid)
	for _, masks := range [...]*[2]uint32{&a.PacketIn, &a.PortStatus, &a.FlowRemoved} {
		dst = be.AppendUint32(dst, masks[0])
		dst = be.AppendUint32(dst, masks[1])
	}
	return finish(dst, start, t)
}

// DecodeGetAsync reads a reply with the asynchronous configuration.
func (v Version) DecodeGetAsync(msg []byte) (Async, error) {
	return decodeAsync(TypeGetAsyncReply, msg)
}

// DecodeSetAsync reads a message that sets the asynchronous configuration.
func (v Version) DecodeSetAsync(msg []byte) (Async, error) {
	return decodeAsync(TypeSetAsync, msg)
}

func decodeAsync(t Type, msg []byte) (Async, error) {
	if len(msg) < asyncLen {
		return Async{}, malformed(t, len(msg), "cut short", badRequestLen)
	}
	return Async{
		PacketIn:    [2]uint32{be.Uint32(msg[8:]), be.Uint32(msg[12:])},
		PortStatus:  [2]uint32{be.Uint32(msg[16:]), be.Uint32(msg[20:])},
		FlowRemoved: [2]uint32{be.Uint32(msg[24:]), be.Uint32(msg[28:])},
	}, nil
}
