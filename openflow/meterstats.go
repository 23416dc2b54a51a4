package openflow

import "github.com/weft-sdn/weft/flow"

// MeterStats is the counters of a meter (OpenFlow 1.3.5 §7.3.5.12).
type MeterStats struct {
	ID           uint32
	Flows        uint32
	Packets      uint64
	Bytes        uint64
	DurationSec  uint32
	DurationNsec uint32
	Bands        []Counter
}

// MeterFeatures is what a switch can do with meters (OpenFlow 1.3.5 §7.3.5.14).
type MeterFeatures struct {
	MaxMeter     uint32
	BandTypes    uint32 // 1 << flow.MeterKind
	Capabilities uint32 // MeterFlag…
	MaxBands     uint8
	MaxColor     uint8
}

const (
	meterStatsLen    = 40 // before the bands
	meterConfigLen   = 8  // before the bands
	meterFeaturesLen = 16
)

// AppendMeterStats appends one meter to the body of a meter statistics reply.
func (v Version) AppendMeterStats(dst []byte, s *MeterStats) ([]byte, error) {
	start := len(dst)
	dst = be.AppendUint64(dst, uint64(s.ID)<<32)
	dst = be.AppendUint64(dst, uint64(s.Flows))
	dst = be.AppendUint64(dst, s.Packets)
	dst = be.AppendUint64(dst, s.Bytes)
	dst = be.AppendUint32(dst, s.DurationSec)
	dst = be.AppendUint32(dst, s.DurationNsec)
	return finishRecord(appendCounters(dst, s.Bands), start, 4)
}

// DecodeMeterStats appends the meters in the body of a meter statistics reply
// to dst.
func (v Version) DecodeMeterStats(body []byte, dst []MeterStats) ([]MeterStats, error) {
	for off := 0; off < len(body); {
		n, err := v.record(body, off, 4, meterStatsLen)
		if err != nil {
			return dst, err
		}
		b := body[off : off+n]
		s := MeterStats{
			ID: be.Uint32(b), Flows: be.Uint32(b[12:]), Packets: be.Uint64(b[16:]), Bytes: be.Uint64(b[24:]),
			DurationSec: be.Uint32(b[32:]), DurationNsec: be.Uint32(b[36:]),
		}
		if s.Bands, err = v.counters(b, meterStatsLen, off); err != nil {
			return dst, err
		}
		dst = append(dst, s)
		off += n
	}
	return dst, nil
}

// AppendMeterConfig appends one meter to the body of a meter configuration reply.
func (v Version) AppendMeterConfig(dst []byte, m *flow.Meter) ([]byte, error) {
	start := len(dst)
	dst = be.AppendUint64(dst, uint64(m.Flags)<<32|uint64(m.ID))
	dst, err := appendBands(dst, "meter configuration", m.Bands)
	if err != nil {
		return dst[:start], err
	}
	return finishRecord(dst, start, 0)
}

// DecodeMeterConfig appends the meters in the body of a meter configuration
// reply to dst.
func (v Version) DecodeMeterConfig(body []byte, dst []flow.Meter) ([]flow.Meter, error) {
	for off := 0; off < len(body); {
		n, err := v.record(body, off, 0, meterConfigLen)
		if err != nil {
			return dst, err
		}
		m := flow.Meter{Flags: be.Uint16(body[off+2:]), ID: be.Uint32(body[off+4:])}
		if m.Bands, err = decodeBands(TypeMultipartReply, body, off+meterConfigLen, off+n, nil); err != nil {
			return dst, inBody(v, err, 0)
		}
		dst = append(dst, m)
		off += n
	}
	return dst, nil
}

// AppendMeterFeatures appends the body of a meter features reply.
func (v Version) AppendMeterFeatures(dst []byte, f *MeterFeatures) []byte {
	dst = be.AppendUint32(dst, f.MaxMeter)
	dst = be.AppendUint32(dst, f.BandTypes)
	dst = be.AppendUint32(dst, f.Capabilities)
	return append(dst, f.MaxBands, f.MaxColor, 0, 0)
}

// DecodeMeterFeatures reads the body of a meter features reply.
func (v Version) DecodeMeterFeatures(body []byte) (MeterFeatures, error) {
	if err := v.checkBody(body, meterFeaturesLen); err != nil {
		return MeterFeatures{}, err
	}
	return MeterFeatures{MaxMeter: be.Uint32(body), BandTypes: be.Uint32(body[4:]), Capabilities: be.Uint32(body[8:]), MaxBands: body[12], MaxColor: body[13]}, nil
}
