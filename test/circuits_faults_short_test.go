//go:build !long

package test

func (f *carrierFaults) more() {}
