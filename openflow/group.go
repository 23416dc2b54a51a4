package openflow

import (
	"fmt"

	"github.com/weft-sdn/weft/flow"
)

const (
	groupModLen = 16
	bucketLen   = 16
)

// commandToWire is the number of a command of a group-mod or meter-mod, which
// have no strict ones.
func commandToWire(op string, c flow.Command, answer pair) (uint16, error) {
	switch c {
	case flow.Add:
		return 0, nil
	case flow.Modify:
		return 1, nil
	case flow.Delete:
		return 2, nil
	}
	return 0, unsupported(V13, op, fmt.Sprintf("command %d", c), answer)
}

func commandFromWire(t Type, n uint16, answer pair) (flow.Command, error) {
	if n > 2 {
		return 0, malformed(t, HeaderLen, "unknown command", answer)
	}
	return [...]flow.Command{flow.Add, flow.Modify, flow.Delete}[n], nil
}

// AppendGroupMod appends a group-mod (OpenFlow 1.3.5 §7.3.4.2).
func (v Version) AppendGroupMod(dst []byte, xid uint32, m *flow.GroupMod) ([]byte, error) {
	const op = "group-mod"
	if v == V10 {
		return dst, unsupported(v, op, "groups", badRequestType)
	}
	command, err := commandToWire(op, m.Command, pair{ErrGroupModFailed, GroupModFailedBadCommand})
	if err != nil {
		return dst, err
	}
	start := len(dst)
	out := appendHeader(dst, v, uint8(TypeGroupMod), xid)
	out = be.AppendUint64(out, uint64(command)<<48|uint64(m.Group.Kind)<<40|uint64(m.Group.ID))
	if out, err = appendBuckets(out, op, m.Group.Buckets); err != nil {
		return out[:start], err
	}
	return finish(out, start, TypeGroupMod)
}

// DecodeGroupMod reads a group-mod into m, whose list of buckets is used again.
func (v Version) DecodeGroupMod(msg []byte, m *flow.GroupMod) (err error) {
	if len(msg) < groupModLen {
		return malformed(TypeGroupMod, len(msg), "cut short", badRequestLen)
	}
	if m.Command, err = commandFromWire(TypeGroupMod, be.Uint16(msg[8:]), pair{ErrGroupModFailed, GroupModFailedBadCommand}); err != nil {
		return err
	}
	m.Group.Kind, m.Group.ID = flow.GroupKind(msg[10]), be.Uint32(msg[12:])
	m.Group.Buckets, err = decodeBuckets(TypeGroupMod, msg, groupModLen, len(msg), m.Group.Buckets[:0], nil)
	return err
}

func appendBuckets(dst []byte, op string, buckets []flow.Bucket) ([]byte, error) {
	var err error
	for i := range buckets {
		k := &buckets[i]
		start := len(dst)
		dst = be.AppendUint64(dst, uint64(k.Weight)<<32|uint64(k.WatchPort))
		dst = be.AppendUint64(dst, uint64(k.WatchGroup)<<32)
		if dst, err = appendActions(dst, op, k.Actions); err != nil {
			return dst, err
		}
		n := len(dst) - start // where this overflows the message is too long as well
		dst[start], dst[start+1] = byte(n>>8), byte(n)
	}
	return dst, nil
}

func decodeBuckets(t Type, msg []byte, off, end int, list []flow.Bucket, partial *bool) ([]flow.Bucket, error) {
	answer := pair{ErrGroupModFailed, GroupModFailedBadBucket}
	for off < end {
		if end-off < bucketLen {
			return list, malformed(t, off, "bucket cut short", answer)
		}
		n := int(be.Uint16(msg[off:]))
		if n < bucketLen || n%8 != 0 {
			return list, malformed(t, off, "bucket length below that of its header or no multiple of 8", answer)
		}
		if n > end-off {
			return list, malformed(t, off, "bucket longer than its list", answer)
		}
		k := flow.Bucket{Weight: be.Uint16(msg[off+2:]), WatchPort: flow.Port(be.Uint32(msg[off+4:])), WatchGroup: be.Uint32(msg[off+8:])}
		var err error
		if k.Actions, err = decodeActions(t, msg, off+bucketLen, off+n, nil, partial); err != nil {
			return list, err
		}
		list = append(list, k)
		off += n
	}
	return list, nil
}
