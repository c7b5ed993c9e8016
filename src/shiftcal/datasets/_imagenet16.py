"""16-class-ImageNet: ImageNet's classes in sixteen groups that people name at a glance.

From Geirhos and others, "Generalisation in humans and deep neural networks" (2018), as published
with their "ImageNet-trained CNNs are biased towards texture" (2019).
"""

from __future__ import annotations

# Name -> indices among the 1,000 classes in the order of their wnids. The authors left some kinds
# out: a cock is no bird here, a boxer no dog.
GROUPS: dict[str, tuple[int, ...]] = {
    "airplane": (404,),
    "bear": (294, 295, 296, 297),
    "bicycle": (444, 671),
    "bird": (
        *(8, *range(10, 17), 18, 19, 20, 22, 23, 24),
        *(*range(80, 84), *range(87, 97), 98, 99, 100),
        *(*range(127, 134), *range(135, 146)),
    ),
    "boat": (472, 554, 625, 814, 914),
    "bottle": (440, 720, 737, 898, 899, 901, 907),
    "car": (436, 511, 817),
    "cat": (281, 282, 283, 284, 285, 286),
    "chair": (423, 559, 765, 857),
    "clock": (409, 530, 892),
    "dog": (
        *(*range(152, 192), *range(193, 204), *range(205, 227), *range(228, 242)),
        *(*range(243, 251), *range(252, 258), 259, *range(261, 264), *range(265, 269)),
    ),
    "elephant": (385, 386),
    "keyboard": (508, 878),
    "knife": (499,),
    "oven": (766,),
    "truck": (555, 569, 656, 675, 717, 734, 864, 867),
}
