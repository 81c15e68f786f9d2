// Package storage stands for the client of Google Cloud Storage, in which a Temporal server can archive histories. It has
// those types and methods that the server calls. NewClient refuses, and so does everything else that could be asked.
package storage

import (
	"context"
	"errors"

	"google.golang.org/api/option"
)

// ScopeFullControl is a name that the server needs.
const ScopeFullControl = "https://www.googleapis.com/auth/devstorage.full_control"

var errAbsent = errors.New("this server archives nothing in Google Cloud Storage")

type (
	Client         struct{}
	BucketHandle   struct{}
	BucketAttrs    struct{}
	ObjectHandle   struct{}
	ObjectIterator struct{}
	Reader         struct{}
	Writer         struct{}

	Query       struct{ Prefix string } // which objects the server wants
	ObjectAttrs struct{ Name string }   // what the server reads of one
)

func NewClient(context.Context, ...option.ClientOption) (*Client, error) { return nil, errAbsent }

func (*Client) Bucket(string) *BucketHandle { return &BucketHandle{} }

func (*BucketHandle) Attrs(context.Context) (*BucketAttrs, error)     { return nil, errAbsent }
func (*BucketHandle) Object(string) *ObjectHandle                     { return &ObjectHandle{} }
func (*BucketHandle) Objects(context.Context, *Query) *ObjectIterator { return &ObjectIterator{} }
func (*ObjectIterator) Next() (*ObjectAttrs, error)                   { return nil, errAbsent }
func (*ObjectHandle) Attrs(context.Context) (*ObjectAttrs, error)     { return nil, errAbsent }
func (*ObjectHandle) NewReader(context.Context) (*Reader, error)      { return nil, errAbsent }
func (*ObjectHandle) NewWriter(context.Context) *Writer               { return &Writer{} }

func (*Reader) Read([]byte) (int, error)   { return 0, errAbsent }
func (*Reader) Close() error               { return nil }
func (*Writer) Write([]byte) (int, error)  { return 0, errAbsent }
func (*Writer) Close() error               { return errAbsent }
func (*Writer) CloseWithError(error) error { return nil }
