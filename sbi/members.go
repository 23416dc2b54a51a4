package sbi

import (
	"maps"
	"slices"
)

// UnmarshalJSON and MarshalJSON of what a profile is made of.

func (p *NFProfile) UnmarshalJSON(b []byte) error  { return decode(b, p) }
func (s *NFService) UnmarshalJSON(b []byte) error  { return decode(b, s) }
func (v *Version) UnmarshalJSON(b []byte) error    { return decode(b, v) }
func (e *IPEndPoint) UnmarshalJSON(b []byte) error { return decode(b, e) }
func (s *Snssai) UnmarshalJSON(b []byte) error     { return decode(b, s) }
func (p *PlmnSnssai) UnmarshalJSON(b []byte) error { return decode(b, p) }
func (r *SDRange) UnmarshalJSON(b []byte) error    { return decode(b, r) }
func (p *PlmnID) UnmarshalJSON(b []byte) error     { return decode(b, p) }

func (p NFProfile) MarshalJSON() ([]byte, error)  { return encode(p) }
func (s NFService) MarshalJSON() ([]byte, error)  { return encode(s) }
func (v Version) MarshalJSON() ([]byte, error)    { return encode(v) }
func (e IPEndPoint) MarshalJSON() ([]byte, error) { return encode(e) }
func (s Snssai) MarshalJSON() ([]byte, error)     { return encode(s) }
func (p PlmnSnssai) MarshalJSON() ([]byte, error) { return encode(p) }
func (r SDRange) MarshalJSON() ([]byte, error)    { return encode(r) }
func (p PlmnID) MarshalJSON() ([]byte, error)     { return encode(p) }

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
