"""MD5 of the arrays in ``CIFAR-10-C.tar``, as public loaders of it compare them."""

from __future__ import annotations

DIGESTS = {
    f"CIFAR-10-C/{name}.npy": f"md5:{digest}"
    for name, digest in {
        "brightness": "0a81ef75e0b523c3383219c330a85d48",
        "contrast": "3c8262171c51307f916c30a3308235a8",
        "defocus_blur": "7d1322666342a0702b1957e92f6254bc",
        "elastic_transform": "9421657c6cd452429cf6ce96cc412b5f",
        "fog": "7b397314b5670f825465fbcd1f6e9ccd",
        "frost": "31f6ab3bce1d9934abfb0cc13656f141",
        "gaussian_blur": "c33370155bc9b055fb4a89113d3c559d",
        "gaussian_noise": "ecaf8b9a2399ffeda7680934c33405fd",
        "glass_blur": "7361fb4019269e02dbf6925f083e8629",
        "impulse_noise": "2090e01c83519ec51427e65116af6b1a",
        "jpeg_compression": "2b9cc4c864e0193bb64db8d7728f8187",
        "labels": "c439b113295ed5254878798ffe28fd54",
        "motion_blur": "fffa5f852ff7ad299cfe8a7643f090f4",
        "pixelate": "0f14f7e2db14288304e1de10df16832f",
        "saturate": "1cfae0964219c5102abbb883e538cc56",
        "shot_noise": "3a7239bb118894f013d9bf1984be7f11",
        "snow": "bb238de8555123da9c282dea23bd6e55",
        "spatter": "8a5a3903a7f8f65b59501a6093b4311e",
        "speckle_noise": "ef00b87611792b00df09c0b0237a1e30",
        "zoom_blur": "6ea8e63f1c5cdee1517533840641641b",
    }.items()
}
