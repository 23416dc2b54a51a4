package openflow

import (
	"fmt"

	"github.com/weft-sdn/weft/flow"
)

// Bits of flow.Meter.Flags and MeterFeatures.Capabilities (OpenFlow 1.3.5
// §7.3.4.5).
const (
	MeterFlagKbps  uint16 = 1 << 0 // rates in kbit/s
	MeterFlagPktps uint16 = 1 << 1 // rates in packets/s
	MeterFlagBurst uint16 = 1 << 2 // burst sizes count
	MeterFlagStats uint16 = 1 << 3 // keep counters
)

// MeterBandExperimenter is the kind of an experimenter's band. Such a band is
// decoded without its body, and cannot be encoded.
const MeterBandExperimenter flow.MeterKind = 0xffff

const (
	meterModLen = 16
	bandLen     = 16
	bandMinLen  = 12
)

// AppendMeterMod appends a meter-mod (OpenFlow 1.3.5 §7.3.4.4).
func (v Version) AppendMeterMod(dst []byte, xid uint32, m *flow.MeterMod) ([]byte, error) {
	const op = "meter-mod"
	if v == V10 {
		return dst, unsupported(v, op, "meters", badRequestType)
	}
	command, err := commandToWire(op, m.Command, pair{ErrMeterModFailed, MeterModFailedBadCommand})
	if err != nil {
		return dst, err
	}
	start := len(dst)
	out := appendHeader(dst, v, uint8(TypeMeterMod), xid)
	out = be.AppendUint64(out, uint64(command)<<48|uint64(m.Meter.Flags)<<32|uint64(m.Meter.ID))
	if out, err = appendBands(out, op, m.Meter.Bands); err != nil {
		return out[:start], err
	}
	return finish(out, start, TypeMeterMod)
}

// DecodeMeterMod reads a meter-mod into m, whose list of bands is used again.
func (v Version) DecodeMeterMod(msg []byte, m *flow.MeterMod) (err error) {
	if len(msg) < meterModLen {
		return malformed(TypeMeterMod, len(msg), "cut short", badRequestLen)
	}
	if m.Command, err = commandFromWire(TypeMeterMod, be.Uint16(msg[8:]), pair{ErrMeterModFailed, MeterModFailedBadCommand}); err != nil {
		return err
	}
	m.Meter.Flags, m.Meter.ID = be.Uint16(msg[10:]), be.Uint32(msg[12:])
	m.Meter.Bands, err = decodeBands(TypeMeterMod, msg, meterModLen, len(msg), m.Meter.Bands[:0])
	return err
}

func appendBands(dst []byte, op string, bands []flow.Band) ([]byte, error) {
	for i := range bands {
		b := &bands[i]
		last := uint32(0)
		switch b.Kind {
		case flow.MeterDrop:
		case flow.MeterDSCPRemark:
			last = uint32(b.PrecLevel) << 24
		default:
			return dst, unsupported(V13, op, fmt.Sprintf("meter band of kind %d", b.Kind), pair{ErrMeterModFailed, MeterModFailedBadBand})
		}
		dst = be.AppendUint64(dst, uint64(b.Kind)<<48|bandLen<<32|uint64(b.Rate))
		dst = be.AppendUint64(dst, uint64(b.BurstSize)<<32|uint64(last))
	}
	return dst, nil
}

func decodeBands(t Type, msg []byte, off, end int, list []flow.Band) ([]flow.Band, error) {
	answer := pair{ErrMeterModFailed, MeterModFailedBadBand}
	for off < end {
		if end-off < bandMinLen {
			return list, malformed(t, off, "meter band cut short", answer)
		}
		kind, n := flow.MeterKind(be.Uint16(msg[off:])), int(be.Uint16(msg[off+2:]))
		if n < bandLen || n%8 != 0 {
			return list, malformed(t, off+2, "meter band length below that of a band or no multiple of 8", answer)
		}
		if n > end-off {
			return list, malformed(t, off+2, "meter band longer than its list", answer)
		}
		b := flow.Band{Kind: kind, Rate: be.Uint32(msg[off+4:]), BurstSize: be.Uint32(msg[off+8:])}
		switch kind {
		case flow.MeterDrop, flow.MeterDSCPRemark:
			if n != bandLen {
				return list, malformed(t, off+2, "meter band of wrong length for its type", answer)
			}
			if kind == flow.MeterDSCPRemark {
				b.PrecLevel = msg[off+12]
			}
		}
		list = append(list, b)
		off += n
	}
	return list, nil
}
