package openflow

const helloVersionBitmap = 1 // OFPHET_VERSIONBITMAP

// AppendHello appends a hello (OpenFlow 1.3.5 §7.5.1) of version v, which must
// be the highest that is spoken, with a bitmap of versions unless there are none.
func (v Version) AppendHello(dst []byte, xid uint32, versions ...Version) []byte {
	if len(versions) == 0 {
		return appendBare(dst, v, uint8(TypeHello), xid)
	}
	start := len(dst)
	dst = appendHeader(dst, v, uint8(TypeHello), xid)
	dst = be.AppendUint64(dst, helloVersionBitmap<<48|8<<32|uint64(VersionsOf(versions...)))
	dst[start+3] = byte(len(dst) - start)
	return dst
}

// DecodeHello reads a hello of any version and returns the versions that the
// sender speaks: those of its bitmap, or without one all up to that of the
// header (OpenFlow 1.3.5 §6.3.1). Other elements are passed over. Versions
// below 1.3 have no elements: their body is not read.
func DecodeHello(msg []byte) (Versions, error) {
	h, err := ParseHeader(msg)
	if err != nil {
		return 0, err
	}
	upTo := Versions(2<<min(h.Version, 30)-1) &^ 1
	if h.Version < V13 {
		return upTo, nil
	}
	for off := HeaderLen; off < len(msg); {
		if len(msg)-off < 4 {
			return 0, malformed(TypeHello, off, "element cut short", badRequestLen)
		}
		n := int(be.Uint16(msg[off+2:]))
		if n < 4 {
			return 0, malformed(TypeHello, off+2, "element length below that of its header", badRequestLen)
		}
		if pad8(n) > len(msg)-off {
			return 0, malformed(TypeHello, off+2, "element longer than the message", badRequestLen)
		}
		if be.Uint16(msg[off:]) == helloVersionBitmap {
			if n%4 != 0 {
				return 0, malformed(TypeHello, off+2, "version bitmap is no multiple of 4 octets", badRequestLen)
			}
			if n >= 8 {
				return Versions(be.Uint32(msg[off+4:])), nil
			}
		}
		off += pad8(n)
	}
	return upTo, nil
}
