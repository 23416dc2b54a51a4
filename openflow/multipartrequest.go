package openflow

import "github.com/weft-sdn/weft/flow"

const (
	flowRequestLen   = 32 // before the match
	flowRequestLen10 = 44
)

// AppendMultipartRequest appends a multipart request.
func (v Version) AppendMultipartRequest(dst []byte, xid uint32, r *MultipartRequest) ([]byte, error) {
	start := len(dst)
	out, err := v.appendMultipart(dst, TypeMultipartRequest, xid, r.Type, r.More)
	if err != nil {
		return dst, err
	}
	switch r.Type {
	case MultipartFlow, MultipartAggregate:
		out, err = v.appendFlowRequest(out, r)
	case MultipartPortStats, MultipartQueue:
		out, err = v.appendPortRequest(out, r)
	case MultipartGroup:
		out = be.AppendUint64(out, uint64(r.Group)<<32)
	case MultipartMeter, MultipartMeterConfig:
		out = be.AppendUint64(out, uint64(r.Meter)<<32)
	case MultipartTableFeatures:
		for i := range r.Features {
			if out, err = v.AppendTableFeatures(out, &r.Features[i]); err != nil {
				break
			}
		}
	case MultipartExperimenter:
		out, err = v.AppendExperimenterStats(out, r.Experimenter, r.ExpType, r.Data)
	}
	if err != nil {
		return out[:start], err
	}
	return finish(out, start, TypeMultipartRequest)
}

func (v Version) appendFlowRequest(dst []byte, r *MultipartRequest) ([]byte, error) {
	if v != V10 {
		dst = be.AppendUint64(dst, uint64(r.Table)<<56|uint64(r.OutPort))
		dst = be.AppendUint64(dst, uint64(r.OutGroup)<<32)
		dst = be.AppendUint64(dst, uint64(r.Cookie))
		dst = be.AppendUint64(dst, uint64(r.CookieMask))
		return appendMatch(dst, &r.Match)
	}
	op := r.Type.String()
	p, ok := port10(r.OutPort)
	switch {
	case !ok:
		return dst, unsupported(v, op, "port "+r.OutPort.String(), badRequestPort)
	case r.CookieMask != 0:
		return dst, unsupported(v, op, "a cookie mask", badRequestType)
	case r.OutGroup != flow.GroupAny:
		return dst, unsupported(v, op, "an output group", badRequestType)
	}
	dst, err := appendMatch10(dst, op, &r.Match)
	return be.AppendUint32(dst, uint32(r.Table)<<24|uint32(p)), err
}

func (v Version) appendPortRequest(dst []byte, r *MultipartRequest) ([]byte, error) {
	low := uint64(0)
	if r.Type == MultipartQueue {
		low = uint64(r.Queue)
	}
	if v != V10 {
		return be.AppendUint64(dst, uint64(r.Port)<<32|low), nil
	}
	port := r.Port
	if r.Type == MultipartQueue && port == flow.PortAny {
		port = flow.PortAll // so OpenFlow 1.0.1 §5.3.5 asks for all ports' queues
	}
	p, ok := port10(port)
	if !ok {
		return dst, unsupported(v, r.Type.String(), "port "+port.String(), badRequestPort)
	}
	return be.AppendUint64(dst, uint64(p)<<48|low), nil
}

// DecodeMultipartRequest reads a multipart request into r; fields that its
// type does not have are left alone. Data is a part of msg.
func (v Version) DecodeMultipartRequest(msg []byte, r *MultipartRequest) (err error) {
	const t = TypeMultipartRequest
	n := v.multipartHeader()
	if len(msg) < n {
		return malformed(t, len(msg), "cut short", badRequestLen)
	}
	r.Type, r.More = MultipartType(be.Uint16(msg[8:])), be.Uint16(msg[10:])&multipartMore != 0
	if v == V10 && r.Type > MultipartQueue && r.Type != MultipartExperimenter {
		return unsupported(v, t.String(), r.Type.String(), badRequestMultipart)
	}
	body := msg[n:]
	least, exact := 0, true
	switch r.Type {
	case MultipartDesc, MultipartTable, MultipartGroupDesc, MultipartGroupFeatures, MultipartMeterFeatures, MultipartPortDesc:
	case MultipartFlow, MultipartAggregate:
		least, exact = flowRequestLen+matchMinLen, false
		if v == V10 {
			least, exact = flowRequestLen10, true
		}
	case MultipartPortStats, MultipartQueue, MultipartGroup, MultipartMeter, MultipartMeterConfig:
		least = 8
	case MultipartTableFeatures, MultipartExperimenter:
		exact = false
	default:
		return unsupported(v, t.String(), r.Type.String(), badRequestMultipart)
	}
	if len(body) < least || exact && len(body) != least {
		return malformed(t, len(msg), "body of wrong length for its type", badRequestLen)
	}
	switch r.Type {
	case MultipartFlow, MultipartAggregate:
		return v.decodeFlowRequest(msg, body, r)
	case MultipartPortStats, MultipartQueue:
		r.Port = flow.Port(be.Uint32(body))
		if v == V10 {
			r.Port = portFrom10(be.Uint16(body))
		}
		if r.Type == MultipartQueue {
			r.Queue = be.Uint32(body[4:])
			if v == V10 && r.Port == flow.PortAll {
				r.Port = flow.PortAny
			}
		}
	case MultipartGroup:
		r.Group = be.Uint32(body)
	case MultipartMeter, MultipartMeterConfig:
		r.Meter = be.Uint32(body)
	case MultipartTableFeatures:
		r.Features, err = v.DecodeTableFeatures(body, r.Features[:0])
	case MultipartExperimenter:
		r.Experimenter, r.ExpType, r.Data, err = v.DecodeExperimenterStats(body)
	}
	return err
}

func (v Version) decodeFlowRequest(msg, body []byte, r *MultipartRequest) error {
	if v == V10 {
		decodeMatch10(body, &r.Match)
		r.Table, r.OutPort = body[40], portFrom10(be.Uint16(body[42:]))
		r.OutGroup, r.Cookie, r.CookieMask = flow.GroupAny, 0, 0
		return nil
	}
	r.Table, r.OutPort, r.OutGroup = body[0], flow.Port(be.Uint32(body[4:])), be.Uint32(body[8:])
	r.Cookie, r.CookieMask = flow.Cookie(be.Uint64(body[16:])), flow.Cookie(be.Uint64(body[24:]))
	next, err := decodeMatch(TypeMultipartRequest, msg, multipartLen+flowRequestLen, &r.Match, nil)
	if err == nil && next != len(msg) {
		err = malformed(TypeMultipartRequest, next, "something after the match", badRequestLen)
	}
	return err
}
