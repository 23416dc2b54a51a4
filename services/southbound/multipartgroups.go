package southbound

import (
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/services/southbound/session"
)

func packetBytes(list []openflow.Counter) []*api.PacketBytes {
	var out []*api.PacketBytes
	for _, c := range list {
		out = append(out, &api.PacketBytes{Packets: c.Packets, Bytes: c.Bytes})
	}
	return out
}

func addGroups(s *session.Session, body []byte, resp *api.ReadMultipartResponse) error {
	list, err := s.Version.DecodeGroupStats(body, nil)
	for _, g := range list {
		resp.Groups = append(resp.Groups, &api.GroupStats{
			Group: g.ID, RefCount: g.RefCount, Packets: g.Packets, Bytes: g.Bytes,
			DurationSec: g.DurationSec, DurationNsec: g.DurationNsec, Buckets: packetBytes(g.Buckets),
		})
	}
	return err
}

func addGroupDescs(s *session.Session, body []byte, resp *api.ReadMultipartResponse) error {
	list, err := s.Version.DecodeGroupDesc(body, nil)
	for _, g := range list {
		d := &api.GroupDesc{Group: g.ID, Type: uint32(g.Kind)}
		for _, b := range g.Buckets {
			d.Buckets = append(d.Buckets, &api.GroupBucket{
				Weight: uint32(b.Weight), WatchPort: uint32(b.WatchPort), WatchGroup: b.WatchGroup, Actions: actionTexts(b.Actions),
			})
		}
		resp.GroupDescs = append(resp.GroupDescs, d)
	}
	return err
}

func actionTexts(list []flow.Action) []string {
	var texts []string
	for _, a := range list {
		texts = append(texts, a.String())
	}
	return texts
}

func addGroupFeatures(s *session.Session, body []byte, resp *api.ReadMultipartResponse) error {
	f, err := s.Version.DecodeGroupFeatures(body)
	out := &api.GroupFeatures{Types: f.Types, Capabilities: f.Capabilities, MaxGroups: f.MaxGroups[:]}
	for _, a := range f.Actions {
		out.Actions = append(out.Actions, uint32(a))
	}
	resp.GroupFeatures = out
	return err
}

func addMeters(s *session.Session, body []byte, resp *api.ReadMultipartResponse) error {
	list, err := s.Version.DecodeMeterStats(body, nil)
	for _, m := range list {
		resp.Meters = append(resp.Meters, &api.MeterStats{
			Meter: m.ID, Flows: m.Flows, Packets: m.Packets, Bytes: m.Bytes,
			DurationSec: m.DurationSec, DurationNsec: m.DurationNsec, Bands: packetBytes(m.Bands),
		})
	}
	return err
}

func addMeterConfigs(s *session.Session, body []byte, resp *api.ReadMultipartResponse) error {
	list, err := s.Version.DecodeMeterConfig(body, nil)
	for _, m := range list {
		c := &api.MeterConfig{Meter: m.ID, Flags: uint32(m.Flags)}
		for _, b := range m.Bands {
			c.Bands = append(c.Bands, &api.MeterBandConfig{Type: uint32(b.Kind), Rate: b.Rate, BurstSize: b.BurstSize, PrecLevel: uint32(b.PrecLevel)})
		}
		resp.MeterConfigs = append(resp.MeterConfigs, c)
	}
	return err
}

func addMeterFeatures(s *session.Session, body []byte, resp *api.ReadMultipartResponse) error {
	f, err := s.Version.DecodeMeterFeatures(body)
	resp.MeterFeatures = &api.MeterFeatures{
		MaxMeter: f.MaxMeter, BandTypes: f.BandTypes, Capabilities: f.Capabilities, MaxBands: uint32(f.MaxBands), MaxColor: uint32(f.MaxColor),
	}
	return err
}
