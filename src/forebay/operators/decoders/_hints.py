"""Arguments of the image decoders that change no result."""

from __future__ import annotations

from dataclasses import dataclass

from forebay.types import Hints


@dataclass(frozen=True)
class DecoderHints(Hints):
    """Accepted for scripts written for DALI.

    Attributes:
        affine: no effect; the executor places its threads.
        device_memory_padding: no effect; memory grows as images need it.
        device_memory_padding_jpeg2k: no effect.
        host_memory_padding: no effect.
        host_memory_padding_jpeg2k: no effect.
        hw_decoder_load: no effect; the codec shares the work between hardware and kernels.
        hybrid_huffman_threshold: no effect.
        jpeg_fancy_upsampling: no effect; chroma is always upsampled smoothly.
        memory_stats: no effect.
        preallocate_height_hint: no effect.
        preallocate_width_hint: no effect.
        split_stages: no effect.
        use_chunk_allocator: no effect.
    """

    affine: bool = True
    device_memory_padding: int = 16777216
    device_memory_padding_jpeg2k: int = 0
    host_memory_padding: int = 8388608
    host_memory_padding_jpeg2k: int = 0
    hw_decoder_load: float = 0.65
    hybrid_huffman_threshold: int = 1000000
    jpeg_fancy_upsampling: bool = False
    memory_stats: bool = False
    preallocate_height_hint: int = 0
    preallocate_width_hint: int = 0
    split_stages: bool = False
    use_chunk_allocator: bool = False


@dataclass(frozen=True)
class CacheHints(Hints):
    """A cache of decoded images on the GPU, which does not exist here.

    Attributes:
        cache_batch_copy: no effect.
        cache_debug: no effect.
        cache_size: no effect; every image is decoded when it is needed.
        cache_threshold: no effect.
        cache_type: no effect.
    """

    cache_batch_copy: bool = True
    cache_debug: bool = False
    cache_size: int = 0
    cache_threshold: int = 0
    cache_type: str = ""


NO_HINTS = DecoderHints()
NO_CACHE = CacheHints()
